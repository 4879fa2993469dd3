//! Instructions of a program's threads, counted by valgrind: machines without performance counters have no other way.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

use crate::process::{Process, pinned};

/// The word by which this program starts valgrind; valgrind's arguments follow.
pub const AS_VALGRIND: &str = "--as-valgrind";
/// The longest time of a run, which takes some fifty times as long as without valgrind.
const LONGEST: Duration = Duration::from_secs(300);
/// The number of the system call `prctl`: that of x86-64, or that of most other architectures.
const PRCTL: i64 = if cfg!(target_arch = "x86_64") { 157 } else { 167 };
/// `PR_GET_AUXV` of `prctl`(2).
const GET_AUXV: u64 = 0x4155_5856;
/// The work of a worker once a second. Its cost grows with the number of distinct call times, which a busy machine
/// increases.
const ONCE_A_SECOND: &str = "brunt_engine::network::recorder::Recorder::take";

/// Becomes valgrind.
///
/// Before version 3.22 valgrind passes `PR_GET_AUXV` on to the kernel. The answer names the real vDSO, which is not mapped
/// under valgrind, and the program crashes. So the call is refused here, and programs read `/proc/self/auxv` instead, which
/// valgrind writes itself.
pub fn become_valgrind(words: &[String]) -> anyhow::Result<()> {
    let is_auxv = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, GET_AUXV)?;
    let rules = [(PRCTL, vec![SeccompRule::new(vec![is_auxv])?])].into_iter().collect();
    let refused = SeccompAction::Errno(rustix::io::Errno::INVAL.raw_os_error().cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, std::env::consts::ARCH.try_into()?)?;
    let program: BpfProgram = filter.try_into()?;
    seccompiler::apply_filter(&program)?;
    Err(Command::new("valgrind").args(words).exec()).context("cannot start valgrind: install it")
}

/// Runs a program on a core, and counts the instructions of all its threads but the first, without [`ONCE_A_SECOND`].
pub fn instructions(core: usize, program: &Path, arguments: &[String]) -> anyhow::Result<u64> {
    in_folder(|folder| of_workers(folder, core, program, arguments))
}

/// Runs a program on a core, and counts the instructions of all its threads.
pub fn instructions_of_all(core: usize, program: &Path, arguments: &[String]) -> anyhow::Result<u64> {
    in_folder(|folder| {
        count_in(folder, core, program, arguments)?;
        let mut sum = 0;
        for entry in fs::read_dir(folder)? {
            sum += thread_and_total(&fs::read_to_string(entry?.path())?).map_or(0, |(_, count)| count);
        }
        Ok(sum)
    })
}

fn in_folder(count: impl FnOnce(&Path) -> anyhow::Result<u64>) -> anyhow::Result<u64> {
    let folder = std::env::temp_dir().join(format!("brunt-benchmarks-{}-counted", std::process::id()));
    fs::create_dir_all(&folder)?;
    let counted = count(&folder);
    // A folder that stays behind does no harm.
    let _ = fs::remove_dir_all(&folder);
    counted
}

/// Runs a program to its end, and counts its instructions, those of all threads, with starting and ending.
pub fn whole(core: usize, program: &Path, arguments: &[String]) -> anyhow::Result<u64> {
    let itself = std::env::current_exe().context("where this program is cannot be said")?;
    let file = std::env::temp_dir().join(format!("brunt-benchmarks-{}-whole", std::process::id()));
    let mut command = pinned(core, &itself);
    command.arg(AS_VALGRIND).arg("--tool=callgrind");
    command.arg(format!("--callgrind-out-file={}", file.display())).arg(program).args(arguments);
    Process::client(command, "brunt under valgrind")?.finish(LONGEST, |_| {})?;
    let text = fs::read_to_string(&file).context("callgrind left no counts")?;
    // A file that stays behind does no harm.
    let _ = fs::remove_file(&file);
    let total = text.lines().find_map(|line| line.strip_prefix("totals:")).map(str::trim);
    total.and_then(|total| total.parse().ok()).context("callgrind counted nothing")
}

/// Runs a program on a core under callgrind, which writes what each thread took into a file of its own.
fn count_in(folder: &Path, core: usize, program: &Path, arguments: &[String]) -> anyhow::Result<()> {
    let itself = std::env::current_exe().context("where this program is cannot be said")?;
    let mut command = pinned(core, &itself);
    command.arg(AS_VALGRIND).args(["--tool=callgrind", "--separate-threads=yes"]);
    command.arg(format!("--callgrind-out-file={}", folder.join("counts").display())).arg(program).args(arguments);
    Process::client(command, "brunt under valgrind")?.finish(LONGEST, |_| {}).map(drop)
}

fn of_workers(folder: &Path, core: usize, program: &Path, arguments: &[String]) -> anyhow::Result<u64> {
    count_in(folder, core, program, arguments)?;
    let mut sum = None;
    let mut is_named = false;
    for entry in fs::read_dir(folder)? {
        let text = fs::read_to_string(entry?.path())?;
        is_named |= text.contains(ONCE_A_SECOND);
        if let Some((thread, count)) = thread_and_total(&text)
            && thread > 1
        {
            sum = Some(sum.unwrap_or(0) + count);
        }
    }
    match sum {
        // Mold leaves symbols out where it is told to strip.
        Some(_) if !is_named => bail!("{} has no symbols: its work once a second would count", program.display()),
        Some(sum) => Ok(sum),
        None => bail!("callgrind counted no thread beside the first"),
    }
}

/// The thread's number and its instructions without [`ONCE_A_SECOND`], from callgrind's output.
fn thread_and_total(text: &str) -> Option<(u32, u64)> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let total: u64 = field("totals:")?.parse().ok()?;
    Some((field("thread:")?.parse().ok()?, total.saturating_sub(cost_of_calls(text, ONCE_A_SECOND))))
}

/// What all calls of a function cost, with what it called in turn. A call is three lines: the function as `cfn=(number) name`, with its name where
/// it comes first (as `fn=` or `cfn=`); how often; and, behind a position, the cost
/// (<https://valgrind.org/docs/manual/cl-format.html>).
fn cost_of_calls(text: &str, function: &str) -> u64 {
    let mut number = None;
    let mut is_called = false;
    let mut cost = 0;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let named = line.strip_prefix("cfn=").or_else(|| line.strip_prefix("fn="));
        if let Some((id, name)) = named.and_then(|named| named.split_once(' '))
            && name == function
        {
            number = Some(id);
        }
        if let Some(called) = line.strip_prefix("cfn=") {
            is_called = number.is_some() && called.split(' ').next() == number;
        } else if line.starts_with("calls=") {
            let taken = lines.next().and_then(|line| line.split(' ').nth(1)?.parse::<u64>().ok());
            if is_called {
                cost += taken.unwrap_or(0);
            }
        }
    }
    cost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_and_its_total_are_read() {
        let text =
            "# callgrind format\nversion: 1\nthread: 3\nevents: Ir\nsummary: 7\n\nfn=(1)\n0 7\ntotals: 5304124\n";
        assert_eq!(thread_and_total(text), Some((3, 5_304_124)));
        let take = format!("cfn=(4) {ONCE_A_SECOND}\ncalls=2 0\n0 300\n");
        let again = "cfn=(5) another\ncalls=1 0\n0 5\ncfn=(4)\ncalls=1 0\n0 4\n";
        let text = format!("thread: 3\nfn=(1)\n0 7\n{take}fn=(2)\n{again}totals: 1000\n");
        assert_eq!(thread_and_total(&text), Some((3, 696)));
        assert_eq!(thread_and_total("version: 1\ntotals: 1\n"), None);
    }
}
