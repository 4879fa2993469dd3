//! What starts agents on Kubernetes, held against the schemas that Kubernetes publishes.

use std::path::PathBuf;
use std::process::Command;

use crate::installed;
use crate::program::{Directory, run};

/// A Python with the schemas of Kubernetes, made once.
fn python() -> PathBuf {
    let requirements = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/agents/requirements.txt");
    installed::python("kubernetes-validate", requirements, &[])
}

const VALIDATE: &str = "
import sys, yaml, kubernetes_validate
for document in yaml.safe_load_all(open(sys.argv[1])):
    kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
    print(document['kind'], document['metadata']['name'])
";

/// The objects of a file, which Kubernetes takes.
fn validated(file: &str) -> String {
    let output = Command::new(python()).args(["-c", VALIDATE, file]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What keeps agents apart, in place and undisturbed, of each file: kinds with the classes of their pods' resources.
const TRAITS: &str = "
import sys, yaml
for file in sys.argv[1:]:
    for document in yaml.safe_load_all(open(file)):
        kind, spec = document['kind'], document.get('spec', {})
        if kind == 'PodDisruptionBudget':
            print(kind, 'lets', spec['maxUnavailable'], 'of', spec['selector']['matchLabels']['app'], 'go')
        if kind not in ('StatefulSet', 'Job'):
            continue
        pod = spec['template']
        [container] = pod['spec']['containers']
        resources = container['resources']
        is_guaranteed = resources['requests'] == resources['limits'] and float(resources['limits']['cpu']).is_integer()
        print(kind, 'of', pod['metadata']['labels']['app'], 'guaranteed', is_guaranteed,
              'evicted', pod['metadata']['annotations']['cluster-autoscaler.kubernetes.io/safe-to-evict'],
              'spread by', [each['topologyKey'] for each in pod['spec'].get('topologySpreadConstraints', [])])
";

#[test]
#[ignore = "needs python3-venv: make test installs it"]
fn agents_are_spread_stay_where_they_are_and_have_whole_cores() {
    let dir = Directory::new();
    let manifest = run(["agent", "--manifest", "20", "--cores", "4"]).with_status(0).stdout;
    let agents = dir.file("agents.yaml", manifest);
    let controller = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/container/kubernetes/controller.yaml");
    let output = Command::new(python()).args(["-c", TRAITS, &agents, controller]).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "StatefulSet of brunt-agent guaranteed True evicted false spread by ['kubernetes.io/hostname']\n\
         PodDisruptionBudget lets 0 of brunt-agent go\n\
         Job of brunt guaranteed True evicted false spread by []\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
#[ignore = "needs docker-compose: make test installs it"]
fn the_compose_file_is_one_that_compose_takes() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/container/compose.yaml");
    let config = |file: &str| {
        Command::new("docker-compose").args(["--profile", "run", "-f", file, "config", "--services"]).output().unwrap()
    };
    let output = config(file);
    let services = String::from_utf8_lossy(&output.stdout);
    let mut services: Vec<_> = services.lines().collect();
    services.sort_unstable();
    assert_eq!(services, ["agent", "bus", "controller"], "{}", String::from_utf8_lossy(&output.stderr));
    // What it would refuse is seen.
    let dir = Directory::new();
    let broken = std::fs::read_to_string(file).unwrap().replace("cap_drop", "cap_drops");
    assert!(!config(&dir.file("broken.yaml", broken)).status.success());
}

/// What the controllers of the compose file and of the manifest have in their environment works for each command.
#[test]
fn a_controller_in_a_container_can_make_every_kind_of_run() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/container/");
    for file in ["compose.yaml", "kubernetes/controller.yaml"] {
        let text = std::fs::read_to_string(format!("{folder}{file}")).unwrap();
        assert!(text.contains("BRUNT_NATS") && text.contains("BRUNT_AGENTS_WAIT"), "{file}");
        assert!(!text.contains("entrypoint"), "{file}: the image's own takes every command");
    }
    let scenario = Directory::new();
    let script = "local brunt = require 'brunt'\nlocal http = brunt.http { base = 'http://127.0.0.1:9' }\n\
                  brunt.scenario('s', function() http:get('/') end):inject { brunt.rate(1, '1s') }\n";
    let file = scenario.file("s.lua", script);
    let of = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let commands = [
        of(&["-r", "5", "-d", "1s", "http://127.0.0.1:9/"]),
        of(&["run", &file]),
        of(&["sweep", "-r", "5,6", "-d", "1s", "http://127.0.0.1:9/"]),
        of(&["find", "--threshold", "p99<1s", "--from", "10", "-d", "1s", "http://127.0.0.1:9/"]),
    ];
    for command in commands {
        let done = crate::program::done(
            crate::program::brunt(&command).env("BRUNT_NATS", "nats://127.0.0.1:1").env("BRUNT_AGENTS_WAIT", "100ms"),
        );
        assert!(
            done.stderr.contains("no connection to the NATS server at nats://127.0.0.1:1"),
            "{command:?}: {}",
            done.stderr
        );
    }
}

#[test]
fn the_manifest_has_every_flag_that_it_was_given() {
    let dir = Directory::new();
    let file = |name: &str| dir.file(name, format!("the content of {name}\n"));
    let (ca, nkey, cert, key) = (file("ca.pem"), file("a.nk"), file("own.pem"), file("own.key"));
    let args = [
        &[
            "agent",
            "--manifest",
            "3",
            "--nats",
            "@BUS",
            "--nats-prefix",
            "team",
            "--nats-ca",
            &ca,
            "--nats-nkey",
            &nkey,
        ][..],
        &[
            "--nats-cert",
            &cert,
            "--nats-key",
            &key,
            "--name",
            "load",
            "--tag",
            "zone=eu",
            "--tag",
            "disk=ssd",
            "--cores",
            "4",
        ],
        &["--no-sandbox", "--keep", "/parts", "--quiet"],
    ];
    let done = crate::program::done(crate::program::brunt(args.concat()).env("BUS", "tls://a1:s3cret@bus:4222"));
    let manifest = done.with_status(0).stdout;
    // The variable's value, not its name.
    assert!(manifest.contains("nats-url: \"tls://a1:s3cret@bus:4222\"") && !manifest.contains("@BUS"), "{manifest}");
    for name in ["ca.pem", "a.nk", "own.pem", "own.key"] {
        assert!(manifest.contains(&format!("the content of {name}")), "{name}: {manifest}");
    }
    for flag in ["--nats-ca", "--nats-nkey", "--nats-cert", "--nats-key", "--no-sandbox", "--quiet"] {
        assert!(manifest.contains(&format!("\"{flag}\"")), "{flag}: {manifest}");
    }
    for pair in
        [["--nats-prefix", "team"], ["--keep", "/parts"], ["--cores", "4"], ["--tag", "zone=eu"], ["--tag", "disk=ssd"]]
    {
        assert!(manifest.contains(&format!("\"{}\", \"{}\"", pair[0], pair[1])), "{pair:?}: {manifest}");
    }
    assert!(manifest.contains("replicas: 3") && manifest.contains("name: load\n"), "{manifest}");
}

#[test]
#[ignore = "needs python3-venv: make test installs it"]
fn the_manifest_is_one_that_kubernetes_takes() {
    let dir = Directory::new();
    let creds = dir.file("a.creds", "-----BEGIN NATS USER JWT-----\nx: \"y\"\n");
    for more in [&[][..], &["--nats-creds", &creds, "--tag", "zone=eu 1", "--cores", "4", "--no-sandbox"]] {
        let args = [&["agent", "--manifest", "20", "--nats", "tls://bus:4222"][..], more].concat();
        let manifest = run(&args).with_status(0).stdout;
        let file = dir.file("agents.yaml", &manifest);
        let output = Command::new(python()).args(["-c", VALIDATE, &file]).output().unwrap();
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let kinds =
            "Secret brunt-agent\nService brunt-agent\nStatefulSet brunt-agent\nPodDisruptionBudget brunt-agent\n";
        assert_eq!(stdout, kinds, "{stderr}\n{manifest}");
        assert!(manifest.contains("replicas: 20"), "{manifest}");
        // An image without a shell runs it.
        assert!(manifest.contains("command: [\"brunt\"]") && !manifest.contains("\"sh\""), "{manifest}");
    }
    // An account for each agent.
    for number in 0..20 {
        dir.file(&format!("brunt-agent-{number}.creds"), format!("account {number}\n"));
    }
    let args = ["agent", "--manifest", "20", "--nats", "tls://bus:4222", "--nats-creds", &dir.path("")];
    let manifest = run(args).with_status(0).stdout;
    let file = dir.file("accounts.yaml", &manifest);
    let kinds = "Secret brunt-agent\nSecret brunt-agent-accounts\nService brunt-agent\nStatefulSet brunt-agent\nPodDisruptionBudget brunt-agent\n";
    assert_eq!(validated(&file), kinds, "{manifest}");
    assert!(manifest.contains("account 19") && manifest.contains("subPathExpr: $(POD_NAME).creds"), "{manifest}");
    // The files of the repository.
    let of_repository = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/container/kubernetes/");
    assert_eq!(validated(&format!("{of_repository}bus.yaml")), "Pod bus\nService bus\n");
    assert_eq!(validated(&format!("{of_repository}controller.yaml")), "Job brunt\n");
    // What Kubernetes would refuse is seen.
    let broken = run(["agent", "--manifest", "20"]).with_status(0).stdout.replace("replicas: 20", "replicas: many");
    let file = dir.file("broken.yaml", broken);
    assert!(!Command::new(python()).args(["-c", VALIDATE, &file]).output().unwrap().status.success());
}
