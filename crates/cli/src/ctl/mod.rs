//! Changes of a run while it goes on: a Unix socket in the user's own directory, on which the run listens, and its
//! messages.
//!
//! A request is one line of JSON, and so is its answer.

mod places;
mod server;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use brunt_record::change::{Action, Change};
use brunt_report::changes::when;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use self::places::{Place, reachable};
pub use self::server::CtlServer;

/// The longest line, in bytes.
const LONGEST_LINE: u64 = 4096;
/// How long either side waits for the other.
const PATIENCE: Duration = Duration::from_secs(5);

/// A request to a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Asks for the run's description.
    Who,
    /// To change.
    Change(Action),
}

/// The answer of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The run's description.
    Run(About),
    /// The change, with its time.
    Changed(Change),
    /// The reason for refusing a change.
    Refused(String),
}

/// The description of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The id of its metrics.
    pub id: String,
    /// The id of its process.
    pub pid: u32,
    /// Its name, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its target, without secrets.
    pub target: String,
}

/// Sends a request to the run at `path`.
///
/// # Errors
/// When nobody listens there, or the answer cannot be understood.
pub fn ask(path: &Path, question: &Question) -> Result<Answer> {
    let mut stream = UnixStream::connect(path).with_context(|| format!("cannot reach {}", path.display()))?;
    stream.set_read_timeout(Some(PATIENCE)).and_then(|()| stream.set_write_timeout(Some(PATIENCE)))?;
    stream.write_all(&line(question)).context("the run does not listen")?;
    read_line(&stream).context("the run does not answer")
}

/// The change in words.
pub fn sentence(change: &Change) -> String {
    let at = format!("at {} of the run", when(change));
    match &change.action {
        Action::Rate(rate) => format!("{rate} calls a second, {at}"),
        Action::Users(users) => format!("{users} virtual users, {at}"),
        Action::Pause => format!("paused {at}: nothing is due until it is resumed"),
        Action::Resume => format!("resumed {at}"),
        Action::Mark(text) => format!("marked '{text}' {at}"),
    }
}

/// A line of JSON.
fn line(words: &impl Serialize) -> Vec<u8> {
    // Writing plain data into memory does not fail.
    let mut line = serde_json::to_vec(words).unwrap_or_default();
    line.push(b'\n');
    line
}

fn read_line<T: DeserializeOwned>(stream: &UnixStream) -> Result<T> {
    let mut line = Vec::new();
    BufReader::new(stream.take(LONGEST_LINE)).read_until(b'\n', &mut line)?;
    Ok(serde_json::from_slice(&line)?)
}
