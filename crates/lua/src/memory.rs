//! The memory limit of a script's state. A script that keeps everything ends its run, with the report so far, and not
//! the process or the machine.

use std::sync::OnceLock;

use brunt_plan::units::Size;

/// The least limit, which the `LuaJIT` states of modest scripts never reach.
const LEAST: u64 = 256 * 1024 * 1024;

/// Lua's message when a state has no memory left.
const SAYS: &str = "not enough memory";

/// The memory limit of a state, in bytes. It is the state's part of the memory that was available when the first state
/// was made, if each core has a state and one part is left for everything else. 0, for no limit, where the system does
/// not tell the available memory.
pub(crate) fn limit() -> usize {
    static LIMIT: OnceLock<u64> = OnceLock::new();
    let bytes = LIMIT.get_or_init(|| {
        let parts = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64 + 1;
        available().map_or(0, |bytes| (bytes / parts).max(LEAST))
    });
    usize::try_from(*bytes).unwrap_or(0)
}

/// The memory available to this process, in bytes: the machine's, or its control group's where that is less.
fn available() -> Option<u64> {
    let machine = of_meminfo(&std::fs::read_to_string("/proc/meminfo").ok()?)?;
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    Some(group.map_or(machine, |group: u64| group.min(machine)))
}

/// The value of `MemAvailable` in `/proc/meminfo` (proc(5)).
fn of_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Whether Lua's message means that a state has reached its limit.
pub(crate) fn is_full(problem: &str) -> bool {
    problem.contains(SAYS)
}

/// The explanation added to Lua's message then.
pub(crate) fn full() -> String {
    format!(
        "the script keeps too much: each thread's state may take {}, by the memory of this machine and its cores; what a \
         table or global holds is never let go",
        Size(limit() as f64)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_available_is_read() {
        assert_eq!(of_meminfo("MemTotal: 9 kB\nMemAvailable:   2048 kB\n"), Some(2 * 1024 * 1024));
        assert_eq!(of_meminfo("MemTotal: 9 kB\n"), None);
        assert_eq!(of_meminfo("MemAvailable: many kB\n"), None);
    }

    #[test]
    fn a_state_that_is_full_fails_and_says_so() {
        let lua = crate::state::everything();
        lua.set_memory_limit(20_000_000).unwrap();
        let error = lua.load("local t = {} for i = 1, 1e6 do t[i] = ('x'):rep(1000) .. i end").exec().unwrap_err();
        let said = crate::error::from_lua("the script", "a.lua", &error).to_string();
        assert!(said.contains("not enough memory") && said.contains("the script keeps too much"), "{said}");
    }
}
