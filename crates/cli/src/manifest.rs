//! `brunt agent --manifest N`: what starts agents on Kubernetes, in YAML.

use anyhow::{Context as _, Result};

use crate::args::machines::Bus;
use crate::files;

/// CPUs of an agent, if nothing else is said.
const CORES: u32 = 2;

/// Agents that are to be started.
#[derive(Debug)]
pub struct Manifest<'a> {
    /// How many.
    pub agents: u32,
    /// The way to their bus.
    pub bus: &'a Bus,
    /// CPUs of each, if their number was given.
    pub cores: Option<u32>,
    /// Their tags.
    pub tags: &'a [(String, String)],
    /// Whether scripts of controllers may do whatever the agents may.
    pub no_sandbox: bool,
}

/// A Secret with the way to the bus, and a stateful set of so many agents.
///
/// # Errors
/// When the file of credentials cannot be read.
pub fn yaml(manifest: &Manifest<'_>) -> Result<String> {
    let Manifest { agents, bus, cores, tags, no_sandbox } = *manifest;
    let url = text(bus.nats.as_deref().unwrap_or("tls://nats:4222"));
    let cores = cores.unwrap_or(CORES);
    let version = env!("CARGO_PKG_VERSION");
    // Kubernetes puts variables in the place of $(NAME), and a $ in the place of $$.
    let words = ["agent", "--nats", "@NATS_URL", "--name", "$(POD_NAME)", "--tag", "node=$(NODE_NAME)"];
    let mut args: Vec<String> = words.map(str::to_owned).into();
    for (key, value) in tags {
        args.extend(["--tag".to_owned(), format!("{key}={value}").replace('$', "$$")]);
    }
    if no_sandbox {
        args.push("--no-sandbox".to_owned());
    }
    let (mut credentials, mut mounts, mut volumes) = (String::new(), "", "");
    if let Some(file) = &bus.nats_creds {
        let content = files::read_text(file).context("--nats-creds")?;
        credentials = format!("\n  agent.creds: {}", text(&content));
        args.extend(["--nats-creds".to_owned(), "/etc/brunt/agent.creds".to_owned()]);
        mounts = "
          volumeMounts:
            - name: credentials
              mountPath: /etc/brunt
              readOnly: true";
        volumes = "
      volumes:
        - name: credentials
          secret:
            secretName: brunt-agent";
    }
    let args = args.iter().map(|arg| text(arg)).collect::<Vec<_>>().join(", ");
    Ok(format!(
        "# Apply it with kubectl apply -f -. Edit the name of the image, which needs nothing but brunt on its PATH.
apiVersion: v1
kind: Secret
metadata:
  name: brunt-agent
type: Opaque
stringData:
  nats-url: {url}{credentials}
---
apiVersion: v1
kind: Service
metadata:
  name: brunt-agent
spec:
  clusterIP: None
  selector:
    app: brunt-agent
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: brunt-agent
spec:
  serviceName: brunt-agent
  replicas: {agents}
  podManagementPolicy: Parallel
  selector:
    matchLabels:
      app: brunt-agent
  template:
    metadata:
      labels:
        app: brunt-agent
    spec:
      automountServiceAccountToken: false
      containers:
        - name: agent
          image: brunt:{version}
          command: [\"brunt\"]
          args: [{args}]
          env:
            - name: NATS_URL
              valueFrom:
                secretKeyRef:
                  name: brunt-agent
                  key: nats-url
            - name: POD_NAME
              valueFrom:
                fieldRef:
                  fieldPath: metadata.name
            - name: NODE_NAME
              valueFrom:
                fieldRef:
                  fieldPath: spec.nodeName
          resources:
            requests:
              cpu: \"{cores}\"
              memory: 256Mi
            limits:
              cpu: \"{cores}\"
              memory: 2Gi
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [\"ALL\"]
            runAsNonRoot: true
            runAsUser: 65532{mounts}{volumes}
"
    ))
}

/// A text in YAML, which takes strings as JSON has them.
fn text(value: &str) -> String {
    serde_json::Value::from(value).to_string()
}
