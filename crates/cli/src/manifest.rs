//! `brunt agent --manifest N`: Kubernetes objects that start agents, in YAML.

use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::args::machines::Bus;
use crate::{executor, files};

/// The default CPUs of an agent.
const CORES: u32 = 2;
/// The default name of the objects.
const NAME: &str = "brunt-agent";
/// The path of the Secret's files in an agent.
const SECRETS: &str = "/etc/brunt";
/// The path of an agent's own credentials.
const ACCOUNT: &str = "/etc/brunt-account/agent.creds";

/// Agents that are to be started.
#[derive(Debug)]
pub struct Manifest<'a> {
    /// How many.
    pub agents: u32,
    /// The way to their bus.
    pub bus: &'a Bus,
    /// The name of the objects; with a number, those of the agents.
    pub name: Option<&'a str>,
    /// CPUs of each, if their number was given.
    pub cores: Option<u32>,
    /// Their tags.
    pub tags: &'a [(String, String)],
    /// Whether scripts of controllers may do whatever the agents may.
    pub no_sandbox: bool,
    /// Where they write their parts down, if they do.
    pub keep: Option<&'a Path>,
    /// Whether they print nothing but errors.
    pub quiet: bool,
}

/// An agent's container: its arguments, its Secret, and its mounts, in lines of YAML.
#[derive(Debug, Default)]
struct Container {
    args: Vec<String>,
    secrets: String,
    /// Credentials of each agent.
    accounts: String,
    mounts: Vec<String>,
    volumes: Vec<String>,
}

impl Container {
    fn new(manifest: &Manifest<'_>) -> Result<Self> {
        let Manifest { bus, cores, tags, no_sandbox, keep, quiet, .. } = *manifest;
        // Kubernetes puts variables in the place of $(NAME), and a $ in the place of $$.
        let words = ["agent", "--nats", "@NATS_URL", "--name", "$(POD_NAME)", "--tag", "node=$(NODE_NAME)"];
        let mut container = Self { args: words.map(str::to_owned).into(), ..Self::default() };
        for (key, value) in tags {
            container.flag(&["--tag", &format!("{key}={value}")]);
        }
        if let Some(cores) = cores {
            container.flag(&["--cores", &cores.to_string()]);
        }
        for (flag, _) in [("--no-sandbox", no_sandbox), ("--quiet", quiet)].iter().filter(|(_, is_given)| *is_given) {
            container.flag(&[flag]);
        }
        if let Some(prefix) = &bus.nats_prefix {
            container.flag(&["--nats-prefix", prefix]);
        }
        container.take_files(bus, manifest.name.unwrap_or(NAME), manifest.agents)?;
        if let Some(keep) = keep {
            container.keep(keep)?;
        }
        Ok(container)
    }

    fn flag(&mut self, words: &[&str]) {
        self.args.extend(words.iter().map(|word| word.replace('$', "$$")));
    }

    /// Files that log in to the bus become a part of the Secret called `name`. A directory of credentials has those of
    /// each agent: a pod sees its own alone.
    fn take_files(&mut self, bus: &Bus, name: &str, agents: u32) -> Result<()> {
        let accounts = bus.nats_creds.as_deref().filter(|path| path.is_dir());
        if let Some(directory) = accounts {
            for agent in (0..agents).map(|number| format!("{name}-{number}")) {
                let path = directory.join(format!("{agent}.creds"));
                let content =
                    files::read_text(&path).context("--nats-creds: each agent needs an account of its own")?;
                self.accounts += &["\n  ", &agent, ".creds: ", &text(&content)].concat();
            }
            self.flag(&["--nats-creds", ACCOUNT]);
            self.mounts.push(format!(
                "{{name: accounts, mountPath: {ACCOUNT}, subPathExpr: $(POD_NAME).creds, readOnly: true}}"
            ));
            self.volumes.push(format!("{{name: accounts, secret: {{secretName: {name}-accounts}}}}"));
        }
        let files = [
            ("--nats-creds", "agent.creds", if accounts.is_some() { &None } else { &bus.nats_creds }),
            ("--nats-nkey", "agent.nkey", &bus.nats_nkey),
            ("--nats-ca", "ca.pem", &bus.nats_ca),
            ("--nats-cert", "agent.pem", &bus.nats_cert),
            ("--nats-key", "agent.key", &bus.nats_key),
        ];
        for (option, file, path) in files {
            let Some(path) = path else { continue };
            let content = files::read_text(path).context(option)?;
            self.secrets += &["\n  ", file, ": ", &text(&content)].concat();
            self.flag(&[option, &format!("{SECRETS}/{file}")]);
        }
        if !self.secrets.is_empty() {
            self.mounts.push(format!("{{name: secrets, mountPath: {SECRETS}, readOnly: true}}"));
            self.volumes.push(format!("{{name: secrets, secret: {{secretName: {name}}}}}"));
        }
        Ok(())
    }

    /// Parts are written into a directory of the pod.
    fn keep(&mut self, directory: &Path) -> Result<()> {
        let Some(directory) = directory.to_str().filter(|directory| directory.starts_with('/')) else {
            bail!("--keep: a manifest wants an absolute path, as it is one in the container")
        };
        self.flag(&["--keep", directory]);
        self.mounts.push(format!("{{name: parts, mountPath: {}}}", text(directory)));
        self.volumes.push("{name: parts, emptyDir: {}}".to_owned());
        Ok(())
    }
}

/// A list in YAML below `name`, with this indentation; nothing where it is empty.
fn list(name: &str, indent: usize, items: &[String]) -> String {
    if items.is_empty() {
        return String::new();
    }
    let (name, before) = (format!("\n{:indent$}{name}:", ""), format!("\n{:indent$}  - ", ""));
    [&name, &before, items.join(&before).as_str()].concat()
}

/// A Secret with the bus's URL and credentials, a stateful set of this many agents, and a budget that keeps them from
/// being moved in a run.
///
/// # Errors
/// When a file cannot be read, or Kubernetes does not allow that name.
pub fn yaml(manifest: &Manifest<'_>) -> Result<String> {
    let Manifest { agents, bus, cores, .. } = *manifest;
    let name = manifest.name.unwrap_or(NAME);
    check_name(name)?;
    let url = match &bus.nats {
        Some(_) => executor::url(bus)?.unwrap_or_default(),
        None => "tls://nats:4222".to_owned(),
    };
    let url = text(&url);
    let version = env!("CARGO_PKG_VERSION");
    let Container { args, secrets, accounts, mounts, volumes } = Container::new(manifest)?;
    let accounts = secret_of_accounts(name, &accounts);
    let (mounts, volumes) = (list("volumeMounts", 10, &mounts), list("volumes", 6, &volumes));
    let cores = cores.unwrap_or(CORES);
    let budget = budget(name);
    let args = args.iter().map(|arg| text(arg)).collect::<Vec<_>>().join(", ");
    Ok(format!(
        "# Apply it with kubectl apply -f -. Edit the name of the image, which needs nothing but brunt on its PATH.
apiVersion: v1
kind: Secret
metadata:
  name: {name}
type: Opaque
stringData:
  nats-url: {url}{secrets}
{accounts}---
apiVersion: v1
kind: Service
metadata:
  name: {name}
spec:
  clusterIP: None
  selector:
    app: {name}
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: {name}
spec:
  serviceName: {name}
  replicas: {agents}
  podManagementPolicy: Parallel
  selector:
    matchLabels:
      app: {name}
  template:
    metadata:
      labels:
        app: {name}
      annotations:
        cluster-autoscaler.kubernetes.io/safe-to-evict: \"false\"
    spec:
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 30
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              app: {name}
      containers:
        - name: agent
          image: brunt:{version}
          command: [\"brunt\"]
          args: [{args}]
          env:
            - name: NATS_URL
              valueFrom:
                secretKeyRef:
                  name: {name}
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
              memory: 1Gi
            limits:
              cpu: \"{cores}\"
              memory: 1Gi
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [\"ALL\"]
            runAsNonRoot: true
            runAsUser: 65532{mounts}{volumes}
{budget}"
    ))
}

/// The Secret with each agent's credentials, if there are some.
fn secret_of_accounts(name: &str, accounts: &str) -> String {
    if accounts.is_empty() {
        return String::new();
    }
    format!(
        "---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: {name}-accounts\ntype: Opaque\nstringData:{accounts}\n"
    )
}

/// What keeps the agents' pods where they are while nodes are drained.
fn budget(name: &str) -> String {
    format!(
        "---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {name}
spec:
  maxUnavailable: 0
  selector:
    matchLabels:
      app: {name}
"
    )
}

/// Checks a name for an object and its pods (RFC 1123 label, with room for a pod's number).
fn check_name(name: &str) -> Result<()> {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_name = name.len() <= 52 && name.starts_with(is_word) && name.ends_with(is_word);
    if !is_name || !name.chars().all(|c| is_word(c) || c == '-') {
        bail!("--name {name}: Kubernetes wants lower-case letters, digits and '-' between them, 52 at most");
    }
    Ok(())
}

/// A text in YAML, which accepts strings in the form of JSON.
fn text(value: &str) -> String {
    serde_json::Value::from(value).to_string()
}
