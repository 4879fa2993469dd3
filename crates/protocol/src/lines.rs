//! Lines of files that flags name: a URL or a body each.

use std::ops::Range;

use brunt_plan::content::{Content, without_mark};
use brunt_plan::target::{self, Target, Url};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::flags::FlagValues;

/// The lines of a file, which travels by content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lines {
    /// The file's name, for errors.
    pub file: String,
    /// Its content.
    pub content: Content,
}

impl Lines {
    /// The file that this flag names, without a byte order mark.
    pub fn given(given: &FlagValues, flag: &str) -> Option<Self> {
        let (file, content) = given.file(flag)?;
        Some(Self { file: file.to_owned(), content: Content(without_mark(&content.0).to_vec()) })
    }

    /// The lines for display, each by `show`.
    pub fn shown(&self, show: impl Fn(&[u8]) -> Vec<u8>) -> Value {
        let content = self.content.0.split(|byte| *byte == b'\n').map(show).collect::<Vec<_>>().join(&b'\n');
        serde_json::to_value(Self { file: self.file.clone(), content: Content(content) }).unwrap_or_default()
    }

    /// The non-empty lines, with their numbers from 1, as ranges in the content.
    pub fn ranges(&self) -> impl Iterator<Item = (usize, Range<usize>)> + '_ {
        let mut start = 0;
        self.content.0.split(|&byte| byte == b'\n').enumerate().filter_map(move |(number, line)| {
            let range = start..start + line.strip_suffix(b"\r").unwrap_or(line).len();
            start += line.len() + 1;
            (!range.is_empty()).then_some((number + 1, range))
        })
    }

    /// The lines of a file of requests, trimmed, with their numbers from 1: neither empty ones nor comments, which begin with `#`.
    /// A line that is not UTF-8 is an error.
    pub fn requests(&self) -> impl Iterator<Item = (usize, Result<&str, String>)> {
        self.ranges().filter_map(|(number, range)| {
            let line = self.content.0.get(range).unwrap_or(&[]);
            let line = std::str::from_utf8(line).map(str::trim).map_err(|error| format!("not UTF-8: {error}"));
            let is_request = line.as_ref().map_or(true, |line| !line.is_empty() && !line.starts_with('#'));
            is_request.then_some((number, line))
        })
    }

    /// An error in the line with this number.
    pub fn wrong(&self, number: usize, problem: &str) -> crate::OptionsError {
        crate::OptionsError(format!("{}, line {number}: {problem}", self.file))
    }
}

/// The target (with the path `/`), the path and the user of a line's URL: the plan's target if it is only a path. A whole URL has one of
/// these schemes.
///
/// # Errors
/// Says what was expected.
pub fn place_of(url: &str, base: &Target, schemes: [&str; 2]) -> Result<(Target, String, Option<String>), String> {
    let at = |target: &Target| Target { path: "/".to_owned(), ..target.clone() };
    if url.starts_with('/') {
        target::check_path(url).map_err(|error| error.to_string())?;
        return Ok((at(base), url.split('#').next().unwrap_or("/").to_owned(), None));
    }
    if !url.contains("://") {
        return Err(format!("expected a path that begins with / or a whole URL, got '{url}'"));
    }
    let Url { target: line, user } = Url::parse(url).map_err(|error| error.to_string())?;
    if !schemes.contains(&line.scheme.as_str()) {
        let [plain, secure] = schemes;
        return Err(format!("'{}://{}' is not {plain}:// or {secure}://", line.scheme, line.authority()));
    }
    let path = line.path.clone();
    Ok((if is_same(&line, base) { at(base) } else { at(&line) }, path, user))
}

/// Whether two targets are the same host and port, by the same scheme of HTTP or WebSocket.
pub fn is_same(a: &Target, b: &Target) -> bool {
    let port = |to: &Target| to.port.unwrap_or(if matches!(to.scheme.as_str(), "https" | "wss") { 443 } else { 80 });
    a.scheme == b.scheme && a.host == b.host && port(a) == port(b)
}
