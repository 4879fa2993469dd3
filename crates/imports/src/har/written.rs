//! The scenario of a recording, as Lua.

use std::fmt::Write as _;

use super::Options;
use super::archive::Archive;
use super::carry::{Carried, Carrier};
use super::choice::{Choice, Chosen};
use super::html;
use super::source::Sources;
use crate::Imported;
use crate::call::Call;
use crate::lua::{block, comment, indented, part_of_its_own, quoted, table};
use crate::script::{Script, injection};
use crate::text::Text;

/// The bounds of users' pauses in milliseconds: shorter ones are the browser's own, longer ones mean that the user went
/// away.
const LEAST_PAUSE_MS: f64 = 400.0;
const MOST_PAUSE_MS: f64 = 60_000.0;
/// The most requests in one function, and the greatest weight of their code.
const MOST_REQUESTS: usize = 50;
const MOST_WEIGHT: usize = 10_000;
/// Prefixes of cookies by which analytics services count visitors.
const OF_COUNTERS: [&str; 6] = ["_ga", "_gid", "_gat", "_gcl", "_fbp", "_hj"];

/// Requests of one page, one after the other.
struct Visit {
    title: Option<String>,
    requests: Vec<usize>,
    weight: usize,
}

pub(super) fn write(archive: &Archive, choice: &Choice, options: &Options, mut script: Script, name: &str) -> Imported {
    let before = cookies_before(&choice.chosen);
    let mut carrier = Carrier::new(&mut script, &choice.base);
    let mut calls: Vec<Carried> =
        choice.chosen.iter().enumerate().map(|(place, one)| carrier.call(place, one)).collect();
    let sources = std::mem::take(&mut carrier.sources);
    if sources.is_spent() {
        script.leave(
            "the recording",
            "it is too large to look for every value in all earlier answers: look for tokens and ids",
        );
    }
    script.base.clone_from(&choice.base);
    common_headers(&mut calls, choice, &mut script);
    notes(choice, options, &mut script);

    let mut body = String::new();
    if sources.all.iter().any(|source| source.name.is_some()) {
        body.push_str("local found = {} -- what earlier answers said\n");
    }
    body.push_str(&cookies(&before, &mut script));
    let visits = visits(archive, &choice.chosen, &calls);
    let mut last: Option<f64> = None;
    for visit in &visits {
        let first = visit.requests.first().and_then(|place| choice.chosen.get(*place));
        let first_ms = first.and_then(|one| one.entry.began_ms);
        if let Some(pause) = pause(last, first_ms) {
            let _ = writeln!(body, "{pause}");
        }
        let mut inner = String::new();
        let mut is_first = true;
        for place in &visit.requests {
            let (Some(one), Some(call)) = (choice.chosen.get(*place), calls.get(*place)) else { continue };
            if !is_first && let Some(pause) = pause(last, one.entry.began_ms) {
                let _ = writeln!(inner, "{pause}");
            }
            let named = |user: usize| match (calls.get(user), choice.chosen.get(user)) {
                (Some(Carried { call: Call { name: Some(name), .. }, .. }), _) => name.clone(),
                (_, Some(one)) => format!("{} {}", one.entry.method, one.entry.path_alone()),
                _ => String::new(),
            };
            let code = script.bounded(request(*place, one, call, &sources, is_first, named), &one.entry.place());
            inner.push_str(if is_first && code.starts_with("answer = ") { "local " } else { "" });
            inner.push_str(&code);
            is_first = false;
            last = ended(one).or(last);
        }
        if !body.is_empty() {
            body.push('\n');
        }
        match &visit.title {
            Some(title) => {
                let _ =
                    writeln!(body, "brunt.group({}, function()\n{}\nend)", quoted(title), indented(inner.trim_end()));
            }
            None if visits.len() > 1 => body.push_str(&part_of_its_own(&inner)),
            None => body.push_str(&block(&inner)),
        }
    }
    let body = body.trim_start_matches('\n').trim_end();
    let _ = write!(
        script.body,
        "\nlocal visit = brunt.scenario(\"visit\", function(vu)\n{}\nend)\n{}",
        indented(body),
        injection("visit")
    );
    script.written("recording", name)
}

fn notes(choice: &Choice, options: &Options, script: &mut Script) {
    if choice.assets > 0 {
        let files = if choice.assets == 1 { "1 file".to_owned() } else { format!("{} files", choice.assets) };
        script.notes.push(if options.assets {
            format!("{files} that pages load: they follow the request before them, at once, as browsers do")
        } else {
            let (are, them) = if choice.assets == 1 { ("is", "it") } else { ("are", "them") };
            script.aside = Some(format!("{files} that pages load, which --assets keeps"));
            format!("{files} that pages load {are} left out; brunt import har --assets keeps {them}")
        });
    }
}

/// The time at which the answer to a request was complete, in milliseconds.
fn ended(one: &Chosen) -> Option<f64> {
    std::iter::once(&one.entry)
        .chain(&one.led_to)
        .filter_map(|entry| Some(entry.began_ms? + entry.took_ms))
        .reduce(f64::max)
}

/// The pause between two moments, as Lua code.
fn pause(from: Option<f64>, to: Option<f64>) -> Option<String> {
    let waited = to? - from?;
    if waited < LEAST_PAUSE_MS {
        return None;
    }
    let seconds = (waited.min(MOST_PAUSE_MS) / 100.0).round() / 10.0;
    let cut =
        if waited > MOST_PAUSE_MS { format!(" -- {:.0} s in the recording", waited / 1e3) } else { String::new() };
    Some(format!("brunt.pause({seconds}){cut}"))
}

/// Moves header fields that all requests share to the client.
fn common_headers(calls: &mut [Carried], choice: &Choice, script: &mut Script) {
    let first = choice.chosen.first().map(|one| &one.entry);
    for name in ["User-Agent", "Accept-Language"] {
        let value = first.and_then(|entry| entry.header(name)).filter(|value| crate::encoded::is_field_value(value));
        script.headers.extend(value.map(|value| (name.to_owned(), Text::plain(value))));
    }
    if first.and_then(|entry| entry.header("accept-encoding")).is_some_and(|value| value.contains("gzip")) {
        script.client.push("compressed = true".to_owned());
    }
    if choice.base.starts_with("https://")
        && let Some(version) = first.and_then(|entry| entry.http)
    {
        script.client.push(format!("http = \"{version}\""));
    }
    let Some(candidates) = calls.first().map(|one| one.call.headers.clone()).filter(|_| calls.len() > 1) else {
        return;
    };
    for field in candidates.into_iter().filter(|(_, value)| value.is_known()).take(100) {
        if field.0.eq_ignore_ascii_case("content-type") || !calls.iter().all(|one| one.call.headers.contains(&field)) {
            continue;
        }
        for one in calls.iter_mut() {
            one.call.headers.retain(|other| *other != field);
        }
        script.headers.push(field);
    }
}

/// The names of cookies that the browser had before the recording.
fn cookies_before(chosen: &[Chosen]) -> Vec<String> {
    let (mut set, mut before): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for one in chosen {
        for entry in std::iter::once(&one.entry).chain(&one.led_to) {
            for (name, _) in &entry.cookies {
                let is_counter = OF_COUNTERS.iter().any(|counter| name.starts_with(counter));
                if !set.contains(name) && !before.contains(name) && !is_counter {
                    before.push(name.clone());
                }
            }
            let fields = entry.answer_headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
            let lines = fields.flat_map(|(_, value)| value.lines());
            set.extend(lines.filter_map(|line| line.split(['=', ';']).next()).map(|name| name.trim().to_owned()));
        }
    }
    before.truncate(100);
    before
}

fn cookies(before: &[String], script: &mut Script) -> String {
    if before.is_empty() {
        return String::new();
    }
    let mut entries = Vec::new();
    for name in before {
        let variable = crate::lua::name_of(&format!("cookie_{name}"), "cookie").to_ascii_uppercase();
        let what = format!("the browser had it before the recording; --env {variable} gives one, else it is not sent");
        script.leave(format!("the cookie {name}"), what);
        entries.push(format!("{} = brunt.env({}, \"\")", crate::lua::key(name), quoted(&variable)));
    }
    format!(
        "-- What the browser had before the recording. An empty one is not sent.\nfor name, value in pairs {} do\n  if value ~= \"\" then http:set_cookie(name, value) end\nend\n",
        table(&entries)
    )
}

/// Groups consecutive requests by page, within the limits of a Lua function.
fn visits(archive: &Archive, chosen: &[Chosen], calls: &[Carried]) -> Vec<Visit> {
    let mut visits: Vec<Visit> = Vec::new();
    let mut titles: Vec<String> = Vec::new();
    let mut page: Option<Option<String>> = None;
    for (place, (one, call)) in chosen.iter().zip(calls).enumerate() {
        let is_full = visits
            .last()
            .is_some_and(|visit| visit.requests.len() >= MOST_REQUESTS || visit.weight + call.weight > MOST_WEIGHT);
        let is_document = one.entry.kind.as_deref() == Some("document") && one.entry.page.is_some();
        if page.as_ref() != Some(&one.entry.page) || is_full || is_document {
            page = Some(one.entry.page.clone());
            let title = one.entry.page.as_ref().map(|id| title(archive, id, one, &mut titles));
            visits.push(Visit { title, requests: Vec::new(), weight: 0 });
        }
        if let Some(visit) = visits.last_mut() {
            visit.requests.push(place);
            visit.weight += call.weight;
        }
    }
    visits
}

/// The title of a page: its own, the archive's, or its path. No two pages have the same title.
fn title(archive: &Archive, id: &str, one: &Chosen, titles: &mut Vec<String>) -> String {
    let own =
        one.last().body.as_deref().filter(|_| one.last().content_type.starts_with("text/html")).and_then(html::title);
    let given = archive.pages.iter().find(|(known, _)| known == id).map(|(_, title)| title.clone());
    let is_title = |title: &String| !title.trim().is_empty() && !title.contains("://");
    let title = own.filter(is_title).or(given.filter(is_title)).unwrap_or_else(|| one.last().path_alone().to_owned());
    // A `/` separates a group from an inner one.
    let title = comment(&title, 60).trim().trim_matches('/').replace('/', " ");
    let title = if title.is_empty() { "home".to_owned() } else { title };
    let numbered = (2..).map(|number| format!("{title} ({number})"));
    let free = |name: &String| !titles.contains(name);
    let title = std::iter::once(title.clone()).chain(numbered).take(10_000).find(free).unwrap_or(title);
    titles.push(title.clone());
    title
}

/// The code of a request with its check, the values carried on from its answer, and the files that its page loads.
fn request(
    place: usize,
    one: &Chosen,
    carried: &Carried,
    sources: &Sources,
    is_first: bool,
    named: impl Fn(usize) -> String,
) -> String {
    let mut code = String::new();
    for told in &carried.told {
        let _ = writeln!(code, "-- {}", comment(told, 120));
    }
    let last = one.last();
    // The browser had this in its cache; a user here has not.
    let status = if last.status == 304 { 200 } else { last.status };
    if !one.led_to.is_empty() {
        code.push_str("-- It redirects, and brunt follows.\n");
    }
    let _ = writeln!(code, "{}answer = {}", if is_first { "local " } else { "" }, carried.call.written());
    let _ = if last.has_answer {
        writeln!(code, "brunt.check(answer, {{ [\"is {status}\"] = answer.status == {status} }})")
    } else {
        // The recording has no answer.
        writeln!(code, "brunt.check(answer, {{ [\"is a success\"] = answer.ok }})")
    };
    for source in
        sources.all.iter().filter(|source| source.place == place && !source.uses.is_empty() && !source.is_kept)
    {
        let Some(name) = &source.name else { continue };
        let shown: Vec<_> = source.uses.iter().take(3).map(|user| comment(&named(*user), 60)).collect();
        let more = if source.uses.len() > 3 { format!(" and {} more", source.uses.len() - 3) } else { String::new() };
        let _ = writeln!(code, "-- {} goes on to {}{more}.", comment(&source.what, 80), shown.join(", "));
        let _ = writeln!(code, "found.{name} = {}", source.code);
    }
    if !one.assets.is_empty() {
        let asset = |path: &String| {
            let path = crate::encoded::url_safe(path);
            format!("{{ \"GET\", {}, {{ name = \"assets\" }} }}", quoted(&path))
        };
        let entries: Vec<_> = one.assets.iter().map(asset).collect();
        let _ = writeln!(code, "http:batch {}", table(&entries));
    }
    code
}
