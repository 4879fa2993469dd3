//! The flags of the check on coalescing.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::path::PathBuf;

use clap::Args;
use http::{HeaderName, HeaderValue, Uri};

use super::values;

const ABOUT: &str = "\
What counts origin hits (one of):
  --origin-count URL     a page with a number on it, which grows by one with each
                         request that reaches the origin
  --origin-header NAME   a header of answers that is another for each of those
Without, the check cannot tell whether answers are shared, and says so; it still
finds an answer that repeats what only another request said.

Exit status:
  0  nobody was given another's answer, as far as the check can tell
  1  somebody was: the pair is printed
  2  the command line was wrong
  3  the target never answered";

#[derive(Debug, Args)]
#[command(after_help = ABOUT)]
pub struct CoalesceCheck {
    /// What to ask for: something that takes a while and may be asked for often (GET, HEAD, OPTIONS)
    #[arg(value_name = "URL", value_parser = url)]
    pub url: Uri,
    /// A page that says how many requests have reached the origin
    #[arg(long, value_name = "URL", value_parser = url, conflicts_with = "origin_header")]
    pub origin_count: Option<Uri>,
    /// A header by which the origin makes each of its answers another
    #[arg(long, value_name = "NAME")]
    pub origin_header: Option<HeaderName>,
    /// Identical requests at once
    #[arg(short = 'c', long, value_name = "N", value_parser = values::connections, default_value = "50")]
    pub connections: u32,
    /// How often each probe is made
    #[arg(long, value_name = "N", value_parser = values::repeats, default_value = "5")]
    pub rounds: u32,
    /// Ask with POST, too: two of the same must both reach the origin
    #[arg(long)]
    pub with_post: bool,
    /// A header of every request
    #[arg(short = 'H', long = "header", value_name = "K: V", value_parser = header)]
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// How long an answer may take
    #[arg(long, value_name = "T", value_parser = values::positive_duration, default_value = "30s")]
    pub timeout: u64,
    /// Trust these authorities (PEM) instead of the system's
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub cacert: Option<PathBuf>,
    /// Trust any server
    #[arg(short = 'k', long)]
    pub insecure: bool,
}

fn url(text: &str) -> Result<Uri, String> {
    let wrong = || format!("expected a URL such as http://127.0.0.1:8080/report, got '{text}'");
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    match (uri.scheme_str(), uri.host()) {
        (Some("http" | "https"), Some(host)) if !host.is_empty() => Ok(uri),
        _ => Err(wrong()),
    }
}

fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let wrong = || format!("expected a header such as 'Accept: text/html', got '{text}'");
    let (name, value) = text.split_once(':').ok_or_else(wrong)?;
    Ok((name.trim().parse().map_err(|_| wrong())?, value.trim().parse().map_err(|_| wrong())?))
}
