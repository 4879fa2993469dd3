//! Logs that runs of controllers may replay on this machine.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use brunt_plan::plan::{Load, Plan};
use brunt_plan::share::Portion;
use brunt_protocol::replay::{Logs, OpenLog, WorkerReplay};
use brunt_replay::config::ReplayConfig;
use brunt_replay::fingerprint;
use brunt_replay::log::{Log, LogError, format_names};

/// Logs in some directories. A log is shown to the target that a controller names, so that not every file may be one.
pub struct AllowedLogs {
    /// Whether any file may be one.
    any: bool,
    directories: Vec<PathBuf>,
}

impl AllowedLogs {
    /// Logs in these directories, or anywhere.
    ///
    /// # Errors
    /// When one of them is not there.
    pub fn new(directories: &[PathBuf], any: bool) -> Result<Self> {
        let real = |path: &PathBuf| {
            let real =
                std::fs::canonicalize(path).with_context(|| format!("--logs: no directory {}", path.display()))?;
            anyhow::ensure!(real.is_dir(), "--logs: {} is not a directory", path.display());
            Ok(real)
        };
        Ok(Self { any, directories: directories.iter().map(real).collect::<Result<_>>()? })
    }

    /// The file of a log that may be read, wherever links lead.
    fn find(&self, path: &Path) -> Result<PathBuf, String> {
        let refused = || {
            let directory = path.parent().unwrap_or(path).display();
            format!("it may not read the log {}: start it with --logs {directory}", path.display())
        };
        if !self.any && self.directories.is_empty() {
            return Err(refused());
        }
        let is_within = |real: &Path| self.any || self.directories.iter().any(|directory| real.starts_with(directory));
        match std::fs::canonicalize(path) {
            Ok(real) if is_within(&real) => Ok(real),
            Ok(_) => Err(refused()),
            // Nobody is told which other files there are.
            Err(error) => {
                let parent = path.parent().and_then(|parent| std::fs::canonicalize(parent).ok());
                let is_known = self.any || parent.is_some_and(|parent| is_within(&parent));
                Err(if is_known { format!("cannot read the log {}: {error}", path.display()) } else { refused() })
            }
        }
    }
}

impl Logs for AllowedLogs {
    fn open(&self, plan: &Plan, portion: Portion) -> Result<OpenLog, String> {
        let Load::Replay(replay) = &plan.load else { return Err("the plan replays no log".to_owned()) };
        let [log] = replay.logs.as_slice() else {
            return Err("the plan has several logs, and agents replay one".to_owned());
        };
        let path = self.find(Path::new(log))?;
        let expected = replay.fingerprint.as_ref().ok_or("the plan does not say which log it means")?;
        fingerprint::check(&path, expected).map_err(|error| error.to_string())?;
        let config = ReplayConfig::from_plan(plan, replay).map_err(|error| error.to_string())?;
        let log = Log::open(ReplayConfig { path, ..config }).map_err(|error| format!("{:#}", with_way_out(error)))?;
        let watch = log.watch();
        let logs = log.begin(portion).map_err(|error| format!("cannot start a thread that reads the log: {error}"))?;
        let of_workers = logs.into_iter().map(|log| Box::new(log) as Box<dyn WorkerReplay>).collect();
        Ok(OpenLog { of_workers, read: Box::new(move || watch.read()) })
    }
}

/// What to do about a log that cannot be replayed.
pub fn with_way_out(error: LogError) -> anyhow::Error {
    let way = match &error {
        LogError::Unknown { .. } => {
            format!(
                "give --log-format ({}), --layout for a layout of your own, or --fields for JSON and CSV",
                format_names().join(", ")
            )
        }
        LogError::Template(_) => "--layout has the format as the server's configuration does".to_owned(),
        LogError::Open { .. } | LogError::Empty { .. } | LogError::OneArchive => return error.into(),
    };
    anyhow!("{error}: {way}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_logs_of_these_directories_are_read() {
        let base = std::env::temp_dir().join(format!("brunt-allowed-{}", std::process::id()));
        let (logs, other) = (base.join("logs"), base.join("other"));
        std::fs::create_dir_all(&logs).unwrap();
        std::fs::create_dir_all(&other).unwrap();
        std::fs::write(logs.join("a.log"), "x").unwrap();
        std::fs::write(other.join("secret"), "x").unwrap();
        std::os::unix::fs::symlink(other.join("secret"), logs.join("link.log")).unwrap();
        let allowed = AllowedLogs::new(std::slice::from_ref(&logs), false).unwrap();
        let problem = |allowed: &AllowedLogs, path: &Path| allowed.find(path).unwrap_err();
        assert!(allowed.find(&logs.join("a.log")).is_ok());
        assert!(problem(&allowed, &logs.join("missing.log")).contains("No such file"));
        // What is elsewhere is refused in the same words whether it is there or not.
        for path in [other.join("secret"), other.join("missing"), logs.join("../other/secret"), logs.join("link.log")] {
            assert!(problem(&allowed, &path).contains("may not read the log"), "{}", path.display());
        }
        assert!(
            problem(&AllowedLogs::new(&[], false).unwrap(), &logs.join("a.log")).contains("start it with --logs /")
        );
        assert!(AllowedLogs::new(&[], true).unwrap().find(&other.join("secret")).is_ok());
        assert!(AllowedLogs::new(&[base.join("nowhere")], false).is_err());
        std::fs::remove_dir_all(&base).unwrap();
    }
}
