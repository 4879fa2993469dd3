//! Which part of a log is replayed, and how.

use std::path::PathBuf;

use crate::format::{Format, Options};
use crate::schedule::Scaling;
use crate::select::Selection;

/// Which log is replayed, which part of it, and how.
pub struct ReplayConfig {
    /// The log's file; `-` is standard input.
    pub path: PathBuf,
    /// Further logs in the same format, whose requests are replayed with its own, by time.
    pub more: Vec<PathBuf>,
    /// Its format, if it was given.
    pub format: Option<Format>,
    /// Further options of reading.
    pub options: Options,
    /// The part that is replayed.
    pub selection: Selection,
    /// The scaling of times and requests.
    pub scaling: Scaling,
    /// The window in which lines are sorted, in nanoseconds.
    pub sort_ns: u64,
    /// Whether the log begins anew at its end.
    pub repeats: bool,
    /// The rate in requests per second of a list of targets, which has no times.
    pub rate: Option<f64>,
    /// Header fields that all requests have, in place of the log's.
    pub headers: Vec<(String, String)>,
    /// The share of calls with a `traceparent`, above 0 and up to 1; `None` for no traces.
    pub trace: Option<f64>,
    /// Whether the status that the log has of a call is a success.
    pub logged_is_ok: bool,
    /// The number of bytes of the file that belong to the log, where others read it too: bytes written behind them do
    /// not.
    pub bytes: Option<u64>,
}
