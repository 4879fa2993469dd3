//! The machine that a run was made on, as far as figures depend on it.

use serde::{Deserialize, Serialize};

/// A machine. What is not known of it is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Machine {
    /// Its name on the network.
    pub hostname: String,
    /// The model of its CPUs.
    pub cpu: String,
    /// The CPUs that brunt could use at the same time.
    pub cores: u32,
    /// The kernel and its release, such as `Linux 6.1.0`.
    pub kernel: String,
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cores = format!("{} core{}", self.cores, if self.cores == 1 { "" } else { "s" });
        let parts = [self.hostname.as_str(), &self.cpu, &cores, &self.kernel];
        let known: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        f.write_str(&known.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_left_out() {
        let machine = Machine { cores: 1, kernel: "Linux 6.1.0".to_owned(), ..Machine::default() };
        assert_eq!(machine.to_string(), "1 core, Linux 6.1.0");
        let machine = Machine { hostname: "bench-3".to_owned(), cpu: "EPYC 7543".to_owned(), cores: 8, ..machine };
        assert_eq!(machine.to_string(), "bench-3, EPYC 7543, 8 cores, Linux 6.1.0");
    }
}
