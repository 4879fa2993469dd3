//! `brunt agent --manifest N`: what starts agents on Kubernetes, in YAML.

use anyhow::{Context as _, Result};

use crate::args::machines::Bus;
use crate::files;

/// The limit on file descriptors that the container asks for, as far as its runtime lets it.
const DESCRIPTORS: u32 = 1_048_576;
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
    let mut command = format!("ulimit -n {DESCRIPTORS} 2>/dev/null || true; exec brunt agent --nats @NATS_URL");
    command.push_str(" --name \"$POD_NAME\" --tag \"node=$NODE_NAME\"");
    for (key, value) in tags {
        command.push_str(" --tag ");
        command.push_str(&shlex::try_quote(&format!("{key}={value}")).unwrap_or_default());
    }
    if no_sandbox {
        command.push_str(" --no-sandbox");
    }
    let (mut credentials, mut mounts, mut volumes) = (String::new(), "", "");
    if let Some(file) = &bus.nats_creds {
        let content = files::read_text(file).context("--nats-creds")?;
        credentials = format!("\n  agent.creds: {}", text(&content));
        command.push_str(" --nats-creds /etc/brunt/agent.creds");
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
    let command = text(&command);
    Ok(format!(
        "# Apply it with kubectl apply -f -. The image needs a shell and brunt on its PATH: edit its name.
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
          command: [\"sh\", \"-c\"]
          args: [{command}]
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
            runAsNonRoot: true
            runAsUser: 65532{mounts}{volumes}
"
    ))
}

/// A text in YAML, which takes strings as JSON has them.
fn text(value: &str) -> String {
    serde_json::Value::from(value).to_string()
}
