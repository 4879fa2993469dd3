//! Chooses the requests of a recording that are its user's own: not files that pages load, nor requests to other hosts.

use std::collections::BTreeMap;

use super::Options;
use super::archive::Entry;
use crate::encoded::{host_of, is_field_value, is_token, origin_and_path};
use crate::script::Script;

/// The most requests that are moved.
const MOST: usize = 2_000;
/// Extensions of files that pages load.
const ENDINGS: [&str; 24] = [
    "css",
    "js",
    "mjs",
    "map",
    "png",
    "jpg",
    "jpeg",
    "gif",
    "svg",
    "webp",
    "avif",
    "ico",
    "bmp",
    "woff",
    "woff2",
    "ttf",
    "otf",
    "eot",
    "mp3",
    "mp4",
    "webm",
    "ogg",
    "wasm",
    "webmanifest",
];

/// A request that is moved, with the requests that followed from it.
#[derive(Debug, Clone)]
pub(crate) struct Chosen {
    pub(crate) entry: Entry,
    /// The entries after redirects, in their order; a scenario sees the answer of the last.
    pub(crate) led_to: Vec<Entry>,
    /// Whether the redirect leads to a URL that is not recorded, or to another host.
    pub(crate) stays: bool,
    /// Files that the page loads after it.
    pub(crate) assets: Vec<String>,
}

impl Chosen {
    /// The entry whose answer a scenario sees.
    pub(crate) fn last(&self) -> &Entry {
        self.led_to.last().unwrap_or(&self.entry)
    }
}

/// The base URL of a recording, and the requests that are moved.
#[derive(Debug)]
pub(crate) struct Choice {
    /// The scheme, host and port of the first page.
    pub(crate) base: String,
    pub(crate) chosen: Vec<Chosen>,
    /// The number of files that pages load.
    pub(crate) assets: usize,
}

/// Chooses the requests, and lists those left out. `None` if none is left.
pub(crate) fn choose(entries: &[Entry], options: &Options, script: &mut Script) -> Option<Choice> {
    let base = base(entries)?;
    let mut apart = Apart::default();
    let mut chosen: Vec<Chosen> = Vec::new();
    let mut assets = 0;
    for entry in entries {
        if let Some(why) = refused(entry) {
            apart.count(why, entry);
        } else if !is_near(&entry.origin, &base) && !options.hosts.iter().any(|host| host == host_of(&entry.origin)) {
            apart.host(entry);
        } else if entry.method == "OPTIONS" && entry.header("access-control-request-method").is_some() {
            apart.count("a question of the browser before a request to another origin (CORS)", entry);
        } else if is_asset(entry) {
            assets += 1;
            if let (true, Some(last)) = (options.assets, chosen.last_mut()) {
                last.assets.push(if entry.origin == base { entry.path.clone() } else { entry.url.clone() });
            }
        } else if let Some(first) = follows(entry, &mut chosen) {
            first.led_to.push(entry.clone());
        } else if entry.status == 0 && entry.has_answer {
            apart.count("had no answer", entry);
        } else {
            chosen.push(Chosen { entry: entry.clone(), led_to: Vec::new(), stays: false, assets: Vec::new() });
        }
    }
    if chosen.len() > MOST {
        script.leave("the recording", format!("{} requests after the first {MOST} are left out", chosen.len() - MOST));
        chosen.truncate(MOST);
    }
    for one in &mut chosen {
        one.stays = redirect_of(one.last()).is_some();
    }
    apart.told(script);
    (!chosen.is_empty()).then_some(Choice { base, chosen, assets })
}

/// The origin of the first page, or otherwise of the first request that is not for a file of a page.
fn base(entries: &[Entry]) -> Option<String> {
    let usable = || entries.iter().filter(|entry| refused(entry).is_none() && (entry.status > 0 || !entry.has_answer));
    let is_page = |entry: &&Entry| {
        entry.kind.as_deref() == Some("document") || entry.kind.is_none() && entry.content_type.starts_with("text/html")
    };
    let first = usable().find(is_page).or_else(|| usable().find(|entry| !is_asset(entry))).or_else(|| usable().next());
    first.map(|entry| entry.origin.clone())
}

/// Why a request cannot be made at all; `None` if it can.
fn refused(entry: &Entry) -> Option<&'static str> {
    if entry.origin.is_empty() {
        let is_socket = entry.url.starts_with("ws:") || entry.url.starts_with("wss:");
        return Some(if is_socket { "a WebSocket: write it by brunt.ws" } else { "no request of HTTP" });
    }
    if entry.kind.as_deref() == Some("websocket") || entry.status == 101 {
        return Some("a WebSocket: write it by brunt.ws");
    }
    if entry.method.eq_ignore_ascii_case("CONNECT") {
        return Some("a tunnel through a proxy");
    }
    (!is_token(&entry.method) || !is_field_value(&entry.path)).then_some("no request of HTTP")
}

/// Whether pages load this by themselves.
fn is_asset(entry: &Entry) -> bool {
    if !matches!(entry.method.as_str(), "GET" | "HEAD") {
        return false;
    }
    match entry.kind.as_deref() {
        Some("image" | "stylesheet" | "script" | "font" | "media" | "texttrack" | "manifest" | "ping" | "prefetch") => {
            return true;
        }
        Some("document" | "xhr" | "fetch" | "eventsource") => return false,
        _ => {}
    }
    let kind = entry.content_type.split(';').next().unwrap_or_default().trim();
    let is_media = ["image/", "font/", "audio/", "video/"].iter().any(|media| kind.starts_with(media));
    let is_code = matches!(
        kind,
        "text/css" | "text/javascript" | "application/javascript" | "application/x-javascript" | "application/wasm"
    );
    let name = entry.path_alone().rsplit('/').next().unwrap_or_default();
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    is_media || is_code || ENDINGS.contains(&ending.as_str())
}

/// Whether two origins belong to one site: the same host, or hosts with the same last two labels.
fn is_near(origin: &str, base: &str) -> bool {
    let (host, base) = (host_of(origin), host_of(base));
    let site = |host: &str| -> String {
        let is_name = host.contains(|letter: char| letter.is_ascii_alphabetic()) && !host.starts_with('[');
        let parts: Vec<&str> = host.rsplitn(3, '.').take(2).collect();
        if is_name && parts.len() == 2 { parts.join(".") } else { host.to_owned() }
    };
    site(host) == site(base)
}

/// The whole URL to which an answer redirects.
fn redirect_of(entry: &Entry) -> Option<String> {
    if !matches!(entry.status, 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let to = entry.redirect.as_deref()?;
    if origin_and_path(to).is_some() {
        return Some(to.to_owned());
    }
    match to.strip_prefix('/') {
        Some(rest) if rest.starts_with('/') => Some(format!("{}:{to}", entry.origin.split(':').next()?)),
        Some(_) => Some(format!("{}{to}", entry.origin)),
        None => {
            let directory = entry.path_alone().rsplit_once('/').map_or("", |(directory, _)| directory);
            Some(format!("{}{directory}/{to}", entry.origin))
        }
    }
}

/// The request that led to an entry by a redirect, among the last ten.
fn follows<'c>(entry: &Entry, chosen: &'c mut [Chosen]) -> Option<&'c mut Chosen> {
    let wanted = (entry.origin.clone(), entry.path.clone());
    let leads = |one: &&mut Chosen| redirect_of(one.last()).and_then(|to| origin_and_path(&to)) == Some(wanted.clone());
    chosen.iter_mut().rev().take(10).find(leads)
}

/// Counts of the requests left out, by reason.
#[derive(Debug, Default)]
struct Apart {
    why: BTreeMap<&'static str, (usize, String)>,
    hosts: BTreeMap<String, usize>,
}

impl Apart {
    fn count(&mut self, why: &'static str, entry: &Entry) {
        let counted = self.why.entry(why).or_insert_with(|| (0, entry.place()));
        counted.0 += 1;
    }

    fn host(&mut self, entry: &Entry) {
        *self.hosts.entry(host_of(&entry.origin).to_owned()).or_default() += 1;
    }

    fn told(self, script: &mut Script) {
        for (why, (count, first)) in self.why {
            let more = if count > 1 { format!(" (and {} more)", count - 1) } else { String::new() };
            script.leave(first, format!("not moved: {why}{more}"));
        }
        for (host, count) in self.hosts {
            let are = if count == 1 { "1 request is".to_owned() } else { format!("{count} requests are") };
            script.leave(host.clone(), format!("not moved: {are} for another site; --host {host} keeps them"));
        }
    }
}
