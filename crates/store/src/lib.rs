//! Runs that are kept: an `SQLite` file with every figure of each, from which every view can be made again.
//!
//! A run is stored whole, as plan and recording, beside the figures that lists show. Its plan is stored as plans are shown,
//! without secrets. Several brunts may use one file at once: each change is one transaction, and waits for others.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use brunt_store::{RunSelector, Store, StoreError};
//!
//! fn last_rate(file: &Path) -> Result<f64, StoreError> {
//!     let mut store = Store::open_kept(file)?;
//!     Ok(store.load(&RunSelector::Last)?.rates.ok_per_s)
//! }
//! ```

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use brunt_decide::decision::KeptDecision;
use brunt_decide::kept::{Digest, Entry, Headline, KeptKind, Label};
use brunt_decide::packing;
use brunt_judge::summary::Summary;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, TransactionBehavior, params};

mod browse;
mod entry;
mod schema;
#[cfg(test)]
mod tests;

pub use entry::RunSelector;
pub use schema::FORMAT;

/// The most runs that are kept; the newest stay.
pub const MOST_RUNS: u64 = 1000;
/// How many bytes the runs that are kept may take together; the newest stay.
pub const MOST_BYTES: u64 = 1 << 30;
/// How long to wait for another brunt that is writing.
const PATIENCE: Duration = Duration::from_secs(10);

/// A reason for which a run cannot be kept or found.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file cannot be opened or made.
    #[error("cannot open {path}: {problem}")]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's error.
        problem: String,
    },
    /// There is no file yet.
    #[error("no runs are kept in {path} so far")]
    Nothing {
        /// The file.
        path: PathBuf,
    },
    /// A database that is not brunt's.
    #[error("{path} belongs to another program")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A file that a later brunt made.
    #[error("{path} was made by a later brunt (its format is {got}, this one knows {known})")]
    Newer {
        /// The file.
        path: PathBuf,
        /// The file's format.
        got: i64,
        /// The format that this brunt writes.
        known: i64,
    },
    /// A file that a brunt before the first release made.
    #[error("{path} was made by a draft of brunt, before its first release: move it away, and brunt begins a new one")]
    Draft {
        /// The file.
        path: PathBuf,
    },
    /// A damaged file.
    #[error("{path} is damaged ({problem}): move it away, and brunt begins a new one")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        problem: String,
    },
    /// No room for the run.
    #[error("no room in {path}: the disk is full")]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// A file or directory that must not be written to.
    #[error("{path} cannot be written to")]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// Another brunt holds the file for too long.
    #[error("another brunt has been writing to {path} for {} s: try again", PATIENCE.as_secs())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// A run that takes too much room.
    #[error("the run takes {bytes} bytes, more than the {MOST_BYTES} that all of them may")]
    TooLarge {
        /// The run's size.
        bytes: u64,
    },
    /// There is no such run.
    #[error("there is no run {which} in {path}")]
    NoSuchRun {
        /// The run that was asked for.
        which: String,
        /// The file.
        path: PathBuf,
    },
    /// A decision in place of a run.
    #[error("{which} in {path} was decided over several runs, and a single run is wanted")]
    NotARun {
        /// The run that was asked for.
        which: String,
        /// The file.
        path: PathBuf,
    },
    /// Any other error of `SQLite`.
    #[error("{path}: {problem}")]
    Other {
        /// The file.
        path: PathBuf,
        /// The error of `SQLite`.
        problem: String,
    },
}

/// A kept run or decision.
#[derive(Debug)]
pub enum StoredResult {
    /// A run with every figure.
    Run(Box<Summary>),
    /// A decision over several runs, and the numbers of those that are still kept, in their order.
    Decision(Box<KeptDecision>, Vec<i64>),
}

/// A file with runs.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    connection: Connection,
    most_runs: u64,
    most_bytes: u64,
}

impl Store {
    /// Opens the file to keep runs in, and makes it with its directories if there is none. Only its owner may read it.
    ///
    /// # Errors
    /// When it cannot be opened or made, or has another format.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if !path.exists() {
            prepare(path).map_err(|e| match e.kind() {
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    StoreError::ReadOnly { path: path.into() }
                }
                io::ErrorKind::StorageFull => StoreError::Full { path: path.into() },
                _ => StoreError::Open { path: path.into(), problem: e.to_string() },
            })?;
        }
        let mut store = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        store.attempt(schema::make)?;
        store.check_format()?;
        Ok(store)
    }

    /// Opens an existing file to read it.
    ///
    /// # Errors
    /// When there is none, it cannot be opened, or has another format.
    pub fn open_kept(path: &Path) -> Result<Self, StoreError> {
        if !path.exists() {
            return Err(StoreError::Nothing { path: path.into() });
        }
        let store = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        store.check_format()?;
        Ok(store)
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self, StoreError> {
        // Without SQLITE_OPEN_URI: a name that looks like a URI is a name.
        let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
            .and_then(|connection| connection.busy_timeout(PATIENCE).map(|()| connection))
            .map_err(|e| schema::explained(&e, path))?;
        Ok(Self { path: path.into(), connection, most_runs: MOST_RUNS, most_bytes: MOST_BYTES })
    }

    /// Runs `act` on the database. Errors are in terms of the file.
    fn attempt<T>(&mut self, act: impl FnOnce(&mut Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        act(&mut self.connection).map_err(|e| schema::explained(&e, &self.path))
    }

    fn check_format(&self) -> Result<(), StoreError> {
        let (application, format) =
            schema::identity(&self.connection).map_err(|e| schema::explained(&e, &self.path))?;
        let path = self.path.clone();
        match (application, format) {
            (schema::APPLICATION, FORMAT) => Ok(()),
            (schema::APPLICATION, got) if got > FORMAT => Err(StoreError::Newer { path, got, known: FORMAT }),
            (schema::APPLICATION, _) => Err(StoreError::Draft { path }),
            (0, 0) => Err(StoreError::Nothing { path }),
            _ => Err(StoreError::Foreign { path }),
        }
    }

    /// Keeps a run under its `headline`, and deletes the oldest where there are too many. Returns the run's number.
    ///
    /// # Errors
    /// When there is no room, or the file cannot be written to. Then no part of the run is kept.
    pub fn save(&mut self, summary: &Summary, label: &Label, headline: Headline) -> Result<i64, StoreError> {
        let content = packing::pack(&(&summary.plan, &summary.run))
            .map_err(|e| StoreError::Other { path: self.path.clone(), problem: e.to_string() })?;
        let (most_runs, most_bytes) = (self.most_runs, self.most_bytes);
        if content.len() as u64 > most_bytes {
            return Err(StoreError::TooLarge { bytes: content.len() as u64 });
        }
        let (entry, digest) = (Entry::from_summary(summary, label, headline), Digest::from_summary(summary));
        self.attempt(|connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let number = entry::insert(&transaction, &entry, &digest, &content)?;
            entry::bound(&transaction, most_runs, most_bytes)?;
            transaction.commit()?;
            Ok(number)
        })
    }

    /// Keeps a decision that rests on the kept runs `runs`, with its conclusion in words. Returns its number.
    ///
    /// # Errors
    /// As [`Store::save`].
    pub fn save_decision(
        &mut self,
        decided: &KeptDecision,
        conclusion: String,
        runs: &[i64],
        label: &Label,
    ) -> Result<i64, StoreError> {
        let content = packing::pack(decided)
            .map_err(|e| StoreError::Other { path: self.path.clone(), problem: e.to_string() })?;
        let (most_runs, most_bytes) = (self.most_runs, self.most_bytes);
        let entry = Entry::of_decision(decided.decision(), conclusion, label);
        self.attempt(|connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let number = entry::insert(&transaction, &entry, &Digest::default(), &content)?;
            for run in runs {
                transaction.execute("UPDATE runs SET part_of = ?1 WHERE number = ?2", params![number, run])?;
            }
            entry::bound(&transaction, most_runs, most_bytes)?;
            transaction.commit()?;
            Ok(number)
        })
    }

    /// The kept runs, the newest first; only those that have each of `tags`, if any are given.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn list(&mut self, tags: &[(String, String)]) -> Result<Vec<Entry>, StoreError> {
        let mut entries = self.attempt(|connection| entry::all(connection))?;
        entries.retain(|entry| tags.iter().all(|tag| entry.label.tags.contains(tag)));
        Ok(entries)
    }

    /// A run with every figure.
    ///
    /// # Errors
    /// When there is no such run, it cannot be read, or it is a decision.
    pub fn load(&mut self, which: &RunSelector) -> Result<Summary, StoreError> {
        match self.kept(which)? {
            StoredResult::Run(summary) => Ok(*summary),
            StoredResult::Decision(..) => {
                Err(StoreError::NotARun { which: which.to_string(), path: self.path.clone() })
            }
        }
    }

    /// A run, or a decision with the numbers of its runs, as far as these are kept.
    ///
    /// # Errors
    /// When there is no such run, or it cannot be read.
    pub fn kept(&mut self, which: &RunSelector) -> Result<StoredResult, StoreError> {
        let number = self.number(which)?;
        let (kind, content, runs) = self.attempt(|connection| {
            let (kind, content): (String, Vec<u8>) =
                connection.query_row("SELECT kind, content FROM runs WHERE number = ?1", [number], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })?;
            let mut runs = connection.prepare("SELECT number FROM runs WHERE part_of = ?1 ORDER BY number")?;
            let runs = runs.query_map([number], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
            Ok((kind, content, runs))
        })?;
        let damaged = |e: packing::UnpackError| StoreError::Damaged {
            path: self.path.clone(),
            problem: format!("run {number}: {e}"),
        };
        if KeptKind::named(&kind) == Some(KeptKind::Run) {
            let (plan, run) = packing::unpack_run(&content).map_err(damaged)?;
            return Ok(StoredResult::Run(Box::new(Summary::new(plan, run))));
        }
        Ok(StoredResult::Decision(Box::new(packing::unpack(&content).map_err(damaged)?), runs))
    }

    /// The number of a run.
    ///
    /// # Errors
    /// When there is no such run.
    pub fn number(&mut self, which: &RunSelector) -> Result<i64, StoreError> {
        let found = self.attempt(|connection| match which {
            RunSelector::Last => connection
                .query_row("SELECT number FROM runs ORDER BY number DESC LIMIT 1", [], |row| row.get(0))
                .optional(),
            RunSelector::Number(number) => {
                connection.query_row("SELECT number FROM runs WHERE number = ?1", [number], |row| row.get(0)).optional()
            }
            RunSelector::Name(name) => connection
                .query_row("SELECT number FROM runs WHERE name = ?1 ORDER BY number DESC LIMIT 1", [name], |row| {
                    row.get(0)
                })
                .optional(),
        })?;
        found.ok_or_else(|| StoreError::NoSuchRun { which: which.to_string(), path: self.path.clone() })
    }

    /// Deletes runs; with a decision, the runs that it rests on. Either all of them are deleted or, if one does not
    /// exist, none.
    ///
    /// # Errors
    /// When one does not exist, or the file cannot be written to.
    pub fn remove(&mut self, which: &[RunSelector]) -> Result<usize, StoreError> {
        let mut numbers = which.iter().map(|which| self.number(which)).collect::<Result<Vec<_>, _>>()?;
        numbers.sort_unstable();
        numbers.dedup();
        self.attempt(|connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for number in &numbers {
                transaction.execute("DELETE FROM runs WHERE number = ?1 OR part_of = ?1", params![number])?;
            }
            transaction.commit()
        })?;
        Ok(numbers.len())
    }

    /// Forgets all but the newest `keep` runs, and gives their room back. How many went.
    ///
    /// # Errors
    /// When the file cannot be written to.
    pub fn prune(&mut self, keep: u64) -> Result<usize, StoreError> {
        self.attempt(|connection| {
            let gone = entry::bound(connection, keep, u64::MAX)?;
            connection.execute_batch("VACUUM")?;
            Ok(gone)
        })
    }
}

/// Makes an empty file that only its owner may read, and the directories to it.
fn prepare(path: &Path) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}
