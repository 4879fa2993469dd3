//! The output of `brunt --version`: the version, the commit, the capabilities, and the formats that it reads and
//! writes.

use brunt_cluster::CLUSTER_VERSION;
use brunt_plan::plan::PLAN_VERSION;
use brunt_protocol::Registry;

/// The version, and the commit if the build knew it.
pub fn short() -> String {
    let version = env!("CARGO_PKG_VERSION");
    match env!("BRUNT_COMMIT") {
        "" => version.to_owned(),
        commit => format!("{version} ({commit})"),
    }
}

/// The version, then the schemes of the registry's protocols, and the version of each format (docs/reference.md).
pub fn long(registry: &Registry) -> String {
    // What a build from source leaves out by default.
    let without = if cfg!(feature = "json-schema") { "" } else { "\nwithout    JSON Schema (--features json-schema)" };
    format!(
        "{}\nprotocols  {}\nscripts    LuaJIT 2.1 (scenarios, wrk's scripts), QuickJS-ng (k6's scripts)\nformats    result {}, decision {}, plan {PLAN_VERSION}, \
         store {}, agents {CLUSTER_VERSION}\nbuilt for  {}-{}{without}",
        short(),
        registry.schemes().join(", "),
        brunt_report::json::VERSION,
        brunt_report::decision::VERSION,
        brunt_store::FORMAT,
        std::env::consts::ARCH,
        std::env::consts::OS,
    )
}
