//! A row for each call, in a file (`--samples`), written by a thread of its own.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result};
use brunt_record::redaction::Secrets;
use brunt_record::samples::{Chunk, Row, RowEnd, SampleSink, Sampled};
use serde_json::json;

use crate::args::Output;

/// Chunks that wait to be written: some 250,000 rows. A chunk that finds no room is left out.
const MOST_WAITING: usize = 64;
/// The largest size of the file unless a flag says otherwise, in bytes.
const LIMIT_BYTES: u64 = 1 << 30;
/// The version of the format.
const VERSION: u32 = 1;
/// The columns of a row, in their order.
const COLUMNS: [&str; 17] = [
    "due_ns",
    "sent_ns",
    "arrived_ns",
    "ended_ns",
    "name",
    "outcome",
    "status",
    "bytes_in",
    "bytes_out",
    "agent",
    "worker",
    "connection",
    "user",
    "iteration",
    "tags",
    "lag_ns",
    "phase",
];

/// Something to write.
enum Job {
    /// The load begins, when the wall clock stands at this time at the run clock's zero, in nanoseconds of Unix time.
    Begin(u64),
    /// Rows.
    Rows(Chunk),
}

/// Calls without a row that the thread does not see.
#[derive(Debug, Default)]
struct Unseen {
    by_delay: AtomicU64,
    by_share: AtomicU64,
    never_begun: AtomicU64,
}

/// The file.
pub struct RowFile {
    share: f64,
    jobs: Mutex<Option<SyncSender<Job>>>,
    unseen: Arc<Unseen>,
    writer: Mutex<Option<JoinHandle<Sampled>>>,
}

impl RowFile {
    /// The file that flags ask for, if they do.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn from_flags(secrets: Secrets, args: &Output) -> Result<Option<Self>> {
        let Some(path) = &args.samples else { return Ok(None) };
        Self::new(path, args.samples_share, args.samples_limit, String::new(), secrets).map(Some)
    }

    /// The file of an agent's part, or of the machine that judges its calls: then `agent` is empty. It has this share of the calls, and at
    /// most so many bytes.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(
        path: &Path,
        share: Option<f64>,
        limit_bytes: Option<u64>,
        agent: String,
        secrets: Secrets,
    ) -> Result<Self> {
        let (share, limit_bytes) = (share.unwrap_or(1.0), limit_bytes.unwrap_or(LIMIT_BYTES));
        let file = File::create(path).with_context(|| format!("--samples: cannot write {}", path.display()))?;
        let unseen = Arc::new(Unseen::default());
        let mut writer = Writer {
            file: BufWriter::with_capacity(1 << 20, file),
            is_csv: path.extension().is_some_and(|kind| kind == "csv"),
            secrets,
            agent,
            line: String::new(),
            bytes: 0,
            is_full: false,
            account: Sampled {
                file: path.display().to_string(),
                share_ratio: share,
                limit_bytes,
                ..Sampled::default()
            },
        };
        let (jobs, coming) = sync_channel(MOST_WAITING);
        let told = Arc::clone(&unseen);
        let thread = thread::Builder::new().name("samples".to_owned()).spawn(move || writer.run(&coming, &told));
        let thread = thread.context("cannot start a thread that writes samples")?;
        Ok(Self { share, jobs: Mutex::new(Some(jobs)), unseen, writer: Mutex::new(Some(thread)) })
    }

    /// Writes what has come, and returns the account of the file.
    pub fn end(&self) -> Sampled {
        drop(self.jobs.lock().unwrap_or_else(PoisonError::into_inner).take());
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let account = writer.and_then(|writer| writer.join().ok());
        account.unwrap_or_else(|| Sampled { problem: Some("its thread panicked".to_owned()), ..Sampled::default() })
    }

    fn send(&self, job: Job) {
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Err(TrySendError::Full(Job::Rows(chunk)) | TrySendError::Disconnected(Job::Rows(chunk)))) =
            jobs.as_ref().map(|jobs| jobs.try_send(job))
        else {
            return;
        };
        let Unseen { by_delay, by_share, never_begun } = &*self.unseen;
        by_delay.fetch_add(chunk.len() as u64, Ordering::Relaxed);
        by_share.fetch_add(chunk.left_out, Ordering::Relaxed);
        never_begun.fetch_add(chunk.never_begun, Ordering::Relaxed);
    }
}

impl SampleSink for RowFile {
    fn share(&self) -> f64 {
        self.share
    }

    fn begin(&self, clock_ns: u64, unix_ns: u64) {
        self.send(Job::Begin(unix_ns.saturating_sub(clock_ns)));
    }

    fn take(&self, chunk: Chunk) {
        self.send(Job::Rows(chunk));
    }
}

/// What the thread writes with.
struct Writer {
    file: BufWriter<File>,
    is_csv: bool,
    secrets: Secrets,
    /// The agent whose calls these are; empty for those of the machine that judges them.
    agent: String,
    line: String,
    bytes: u64,
    is_full: bool,
    account: Sampled,
}

impl Writer {
    fn run(&mut self, jobs: &Receiver<Job>, unseen: &Unseen) -> Sampled {
        for job in jobs {
            let written = match job {
                Job::Begin(zero_unix_ns) => self.head(zero_unix_ns),
                Job::Rows(chunk) => self.rows(&chunk),
            };
            self.note(written);
        }
        self.account.left_out_by_delay = unseen.by_delay.load(Ordering::Relaxed);
        self.account.left_out_by_share += unseen.by_share.load(Ordering::Relaxed);
        self.account.never_begun += unseen.never_begun.load(Ordering::Relaxed);
        let ended = self.tail().and_then(|()| self.file.flush());
        self.note(ended);
        self.account.clone()
    }

    /// Remembers the first error, after which nothing more is written.
    fn note(&mut self, written: io::Result<()>) {
        if let Err(error) = written {
            self.is_full = true;
            self.account.problem.get_or_insert_with(|| error.to_string());
        }
    }

    fn head(&mut self, zero_unix_ns: u64) -> io::Result<()> {
        let Sampled { share_ratio, limit_bytes, .. } = self.account;
        self.line = if self.is_csv {
            format!(
                "# brunt samples, version {VERSION}: times are nanoseconds after zero_unix_ns\n\
                 # zero_unix_ns={zero_unix_ns} share={share_ratio} limit_bytes={limit_bytes}\n{}\n",
                COLUMNS.join(",")
            )
        } else {
            let head = json!({
                "brunt_samples": VERSION,
                "zero_unix_ns": zero_unix_ns,
                "share": share_ratio,
                "limit_bytes": limit_bytes,
                "columns": COLUMNS,
            });
            format!("{head}\n")
        };
        self.write_line()
    }

    fn rows(&mut self, chunk: &Chunk) -> io::Result<()> {
        self.account.left_out_by_share += chunk.left_out;
        self.account.never_begun += chunk.never_begun;
        for (number, (row, name, tags)) in (0..).zip(chunk.rows()) {
            self.line.clear();
            let (name, tags) = (shown(name, &self.secrets), shown(tags, &self.secrets));
            let by = (self.agent.as_str(), chunk.worker);
            // A text takes whatever it is given.
            let _ = if self.is_csv {
                put_csv(&mut self.line, by, row, &name, &tags)
            } else {
                put_json(&mut self.line, by, row, &name, &tags)
            };
            self.is_full |= self.bytes + self.line.len() as u64 > self.account.limit_bytes;
            if self.is_full {
                self.account.left_out_by_limit += chunk.len() as u64 - number;
                return Ok(());
            }
            if let Err(error) = self.write_line() {
                self.account.left_out_by_limit += chunk.len() as u64 - number;
                return Err(error);
            }
            self.account.rows += 1;
        }
        Ok(())
    }

    fn tail(&mut self) -> io::Result<()> {
        let Sampled { rows, left_out_by_share, left_out_by_limit, left_out_by_delay, never_begun, .. } = &self.account;
        self.line = if self.is_csv {
            format!(
                "# rows={rows} left_out_by_share={left_out_by_share} left_out_by_limit={left_out_by_limit} \
                 left_out_by_delay={left_out_by_delay} never_begun={never_begun}\n"
            )
        } else {
            let tail = json!({
                "rows": rows,
                "left_out_by_share": left_out_by_share,
                "left_out_by_limit": left_out_by_limit,
                "left_out_by_delay": left_out_by_delay,
                "never_begun": never_begun,
            });
            format!("{tail}\n")
        };
        self.write_line()
    }

    fn write_line(&mut self) -> io::Result<()> {
        self.bytes += self.line.len() as u64;
        self.file.write_all(self.line.as_bytes())
    }
}

/// A text of a script, without secrets and without characters that move a terminal's cursor.
fn shown(text: &str, secrets: &Secrets) -> String {
    brunt_report::clean(&secrets.hide(text)).into_owned()
}

/// The status of an answer.
fn status(row: &Row) -> Option<u16> {
    if let RowEnd::Answered(status, _) = row.ended { Some(status) } else { None }
}

fn phase(row: &Row) -> &'static str {
    if row.measured { "measured" } else { "warm-up" }
}

fn put_csv(line: &mut String, (agent, worker): (&str, u32), row: &Row, name: &str, tags: &str) -> std::fmt::Result {
    fn put(line: &mut String, value: Option<u64>) -> std::fmt::Result {
        value.map_or(Ok(()), |value| write!(line, "{value}"))?;
        line.write_char(',')
    }
    fn text(line: &mut String, value: &str) {
        if value.contains([',', '"']) {
            line.extend(["\"", &value.replace('"', "\"\""), "\","]);
        } else {
            line.extend([value, ","]);
        }
    }
    for time in [Some(row.due_ns), row.sent_ns, row.arrived_ns, Some(row.ended_ns)] {
        put(line, time)?;
    }
    text(line, name);
    text(line, row.ended.name());
    for number in [status(row).map(u64::from), Some(row.bytes_in), Some(row.bytes_out)] {
        put(line, number)?;
    }
    text(line, agent);
    let (user, iteration) = row.user.unzip();
    for number in [Some(u64::from(worker) + 1), row.connection, user, iteration] {
        put(line, number)?;
    }
    text(line, tags);
    put(line, Some(row.lag_ns))?;
    writeln!(line, "{}", phase(row))
}

fn put_json(line: &mut String, (agent, worker): (&str, u32), row: &Row, name: &str, tags: &str) -> std::fmt::Result {
    let (user, iteration) = row.user.unzip();
    let tags: Vec<&str> = tags.split(';').filter(|tag| !tag.is_empty()).collect();
    let values = [
        json!(row.due_ns),
        json!(row.sent_ns),
        json!(row.arrived_ns),
        json!(row.ended_ns),
        json!(name),
        json!(row.ended.name()),
        json!(status(row)),
        json!(row.bytes_in),
        json!(row.bytes_out),
        json!(Some(agent).filter(|agent| !agent.is_empty())),
        json!(worker + 1),
        json!(row.connection),
        json!(user),
        json!(iteration),
        json!(tags),
        json!(row.lag_ns),
        json!(phase(row)),
    ];
    line.push('{');
    for (number, (column, value)) in COLUMNS.iter().zip(values).enumerate() {
        write!(line, "{}\"{column}\":{value}", if number > 0 { "," } else { "" })?;
    }
    writeln!(line, "}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: Row = Row {
        due_ns: 5,
        sent_ns: Some(7),
        arrived_ns: None,
        ended_ns: 9,
        lag_ns: 2,
        ended: RowEnd::Answered(503, false),
        measured: false,
        bytes_in: 10,
        bytes_out: 20,
        connection: Some(1),
        user: Some((4, 2)),
    };

    #[test]
    fn a_row_has_a_value_for_each_column_in_both_formats() {
        let (mut csv, mut json) = (String::new(), String::new());
        let name = shown("a,\"b\"\u{1b}[2J", &Secrets::default());
        put_csv(&mut csv, ("", 0), &ROW, &name, "plan=pro;x=1").unwrap();
        put_json(&mut json, ("a1", 0), &ROW, &name, "plan=pro;x=1").unwrap();
        assert_eq!(csv, "5,7,,9,\"a,\"\"b\"\"\\u{1b}[2J\",not_ok,503,10,20,,1,1,4,2,plan=pro;x=1,2,warm-up\n");
        // The name has a comma of its own.
        assert_eq!(csv.split(',').count(), COLUMNS.len() + 1);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json.as_object().unwrap().len(), COLUMNS.len());
        assert_eq!(json["agent"], "a1");
        assert_eq!((&json["arrived_ns"], &json["tags"][1], &json["user"]), (&json!(null), &json!("x=1"), &json!(4)));
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let directory = std::env::temp_dir().join(format!("brunt-rows-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("rows.csv");
        let args = Output { samples: Some(path.clone()), samples_limit: Some(600), ..Output::default() };
        let file = Arc::new(RowFile::from_flags(Secrets::default(), &args).unwrap().unwrap());
        file.begin(10, 1_000);
        let mut rows = brunt_record::samples::Samples::new(Arc::clone(&file) as Arc<dyn SampleSink>, 0);
        for _ in 0..100 {
            assert!(rows.takes_next());
            rows.push(ROW, &brunt_record::samples::Texts::default());
        }
        rows.never_begun(3);
        rows.hand_over();
        let account = file.end();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
        assert!(text.contains("# zero_unix_ns=990 share=1 limit_bytes=600\n"), "{text}");
        let written = text.lines().filter(|line| line.starts_with('5')).count() as u64;
        assert!(written > 0 && account.rows == written, "{text}");
        assert_eq!((account.rows + account.left_out_by_limit, account.never_begun), (100, 3));
        let tail = format!(
            "# rows={written} left_out_by_share=0 left_out_by_limit={} left_out_by_delay=0 never_begun=3\n",
            100 - written
        );
        assert!(text.ends_with(&tail), "{text}");
    }
}
