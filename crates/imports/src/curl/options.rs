//! The options of curl: those of the request, of the connection, and of curl's own output.

use super::command::{Command, Data, Part, Word};
use crate::ImportError;
use crate::call::METHODS;
use crate::encoded::{is_token, media_type};

/// The meaning of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    Method,
    Header,
    Data,
    DataRaw,
    DataBinary,
    DataEncoded,
    Json,
    Form,
    FormText,
    Query,
    UrlQuery,
    Head,
    User,
    Bearer,
    Digest,
    Basic,
    Cookie,
    CookieJar,
    Range,
    PathAsIs,
    Agent,
    Referer,
    Url,
    Compressed,
    Insecure,
    Follow,
    Literal,
    Http(&'static str),
    Timeout,
    ConnectTimeout,
    /// An option of the connection; `true` if it has a value.
    Connecting(bool),
    /// An option of curl's output or treatment of the answer; `true` if it has a value.
    Shows(bool),
    /// An option for which a scenario has another way; `true` if it has a value.
    Left(bool),
    /// An option that makes no sense here, with the reason.
    Refused(&'static str),
    Next,
}

use Says::{Connecting, Left, Refused, Shows};

/// Options by their long names, with the short ones.
const OPTIONS: &[(&str, Option<char>, Says)] = &[
    ("request", Some('X'), Says::Method),
    ("header", Some('H'), Says::Header),
    ("data", Some('d'), Says::Data),
    ("data-ascii", None, Says::Data),
    ("data-raw", None, Says::DataRaw),
    ("data-binary", None, Says::DataBinary),
    ("data-urlencode", None, Says::DataEncoded),
    ("json", None, Says::Json),
    ("form", Some('F'), Says::Form),
    ("form-string", None, Says::FormText),
    ("get", Some('G'), Says::Query),
    ("url-query", None, Says::UrlQuery),
    ("head", Some('I'), Says::Head),
    ("user", Some('u'), Says::User),
    ("oauth2-bearer", None, Says::Bearer),
    ("digest", None, Says::Digest),
    ("basic", None, Says::Basic),
    ("cookie", Some('b'), Says::Cookie),
    ("user-agent", Some('A'), Says::Agent),
    ("referer", Some('e'), Says::Referer),
    ("url", None, Says::Url),
    ("compressed", None, Says::Compressed),
    ("insecure", Some('k'), Says::Insecure),
    ("location", Some('L'), Says::Follow),
    ("location-trusted", None, Says::Follow),
    ("globoff", Some('g'), Says::Literal),
    ("http1.1", None, Says::Http("1.1")),
    ("http2", None, Says::Http("auto")),
    ("http2-prior-knowledge", None, Says::Http("2")),
    ("http1.0", Some('0'), Refused("brunt speaks HTTP/1.1 and 2")),
    ("http3", None, Refused("brunt speaks HTTP/1.1 and 2")),
    ("http3-only", None, Refused("brunt speaks HTTP/1.1 and 2")),
    ("max-time", Some('m'), Says::Timeout),
    ("connect-timeout", None, Says::ConnectTimeout),
    ("next", Some(':'), Says::Next),
    ("cacert", None, Connecting(true)),
    ("cert", Some('E'), Connecting(true)),
    ("key", None, Connecting(true)),
    ("connect-to", None, Connecting(true)),
    ("resolve", None, Connecting(true)),
    ("unix-socket", None, Connecting(true)),
    ("interface", None, Connecting(true)),
    ("ipv4", Some('4'), Connecting(false)),
    ("ipv6", Some('6'), Connecting(false)),
    ("proxy", Some('x'), Connecting(true)),
    ("noproxy", None, Connecting(true)),
    ("silent", Some('s'), Shows(false)),
    ("show-error", Some('S'), Shows(false)),
    ("verbose", Some('v'), Shows(false)),
    ("include", Some('i'), Shows(false)),
    ("show-headers", None, Shows(false)),
    ("output", Some('o'), Shows(true)),
    ("remote-name", Some('O'), Shows(false)),
    ("remote-header-name", Some('J'), Shows(false)),
    ("output-dir", None, Shows(true)),
    ("create-dirs", None, Shows(false)),
    ("write-out", Some('w'), Shows(true)),
    ("dump-header", Some('D'), Shows(true)),
    ("fail", Some('f'), Shows(false)),
    ("fail-with-body", None, Shows(false)),
    ("fail-early", None, Shows(false)),
    ("progress-bar", Some('#'), Shows(false)),
    ("no-progress-meter", None, Shows(false)),
    ("no-buffer", Some('N'), Shows(false)),
    ("stderr", None, Shows(true)),
    ("trace", None, Shows(true)),
    ("trace-ascii", None, Shows(true)),
    ("trace-time", None, Shows(false)),
    ("styled-output", None, Shows(false)),
    ("path-as-is", None, Says::PathAsIs),
    ("tcp-nodelay", None, Shows(false)),
    ("keepalive-time", None, Shows(true)),
    ("disable", Some('q'), Shows(false)),
    ("parallel", Some('Z'), Shows(false)),
    ("cookie-jar", Some('c'), Says::CookieJar),
    ("junk-session-cookies", Some('j'), Shows(false)),
    ("max-redirs", None, Left(true)),
    ("retry", None, Left(true)),
    ("retry-delay", None, Left(true)),
    ("retry-max-time", None, Left(true)),
    ("retry-all-errors", None, Left(false)),
    ("retry-connrefused", None, Left(false)),
    ("limit-rate", None, Left(true)),
    ("speed-limit", Some('Y'), Left(true)),
    ("speed-time", Some('y'), Left(true)),
    ("range", Some('r'), Says::Range),
    ("no-keepalive", None, Left(false)),
    ("post301", None, Left(false)),
    ("post302", None, Left(false)),
    ("post303", None, Left(false)),
    ("ciphers", None, Left(true)),
    ("tlsv1.2", None, Left(false)),
    ("tlsv1.3", None, Left(false)),
    ("tls-max", None, Left(true)),
    ("aws-sigv4", None, Refused("it signs each request anew, as aws = { … } of a scenario's call does")),
    ("expect100-timeout", None, Left(true)),
    ("upload-file", Some('T'), Refused("send a file by -X PUT --data-binary @FILE")),
    ("config", Some('K'), Refused("write the file's options into the command")),
    ("netrc", Some('n'), Refused("write the user by -u")),
    ("negotiate", None, Refused("brunt has Basic, Bearer and Digest")),
    ("ntlm", None, Refused("brunt has Basic, Bearer and Digest")),
    ("anyauth", None, Refused("say which: --basic or --digest")),
];

/// The option of a long name as written, and whether a `no-` turns it off.
fn long(name: &str) -> Option<(&'static str, Says, bool)> {
    let find = |name: &str| OPTIONS.iter().find(|(long, ..)| *long == name).map(|(long, _, says)| (*long, *says));
    if let Some((long, says)) = find(name) {
        return Some((long, says, false));
    }
    let (long, says) = find(name.strip_prefix("no-")?)?;
    Some((long, says, true))
}

fn short(letter: char) -> Option<(&'static str, Says)> {
    OPTIONS.iter().find(|(_, short, _)| *short == Some(letter)).map(|(long, _, says)| (*long, *says))
}

impl Says {
    fn takes_value(self) -> bool {
        match self {
            Connecting(value) | Shows(value) | Left(value) => value,
            Self::Query
            | Self::Head
            | Self::Digest
            | Self::Basic
            | Self::Compressed
            | Self::Insecure
            | Self::Follow
            | Self::Literal
            | Self::PathAsIs
            | Self::Http(_)
            | Self::Next
            | Refused(_) => false,
            _ => true,
        }
    }
}

fn wrong<T>(line: usize, problem: impl std::fmt::Display) -> Result<T, ImportError> {
    Err(ImportError::Other(format!("line {line}: {problem}")))
}

/// The commands in the words behind `curl`: one, and another for each `--next`.
pub(super) fn read(words: &[Word], line: usize) -> Result<Vec<Command>, ImportError> {
    let mut commands = vec![Command { line, ..Command::default() }];
    let mut words = words.iter();
    let mut only_urls = false;
    while let Some(word) = words.next() {
        let Some(command) = commands.last_mut() else { break };
        let text = word.beginning();
        if only_urls || !text.starts_with('-') || word.known() == Some("-") {
            command.urls.push(word.clone());
        } else if word.known() == Some("--") {
            only_urls = true;
        } else if let Some(name) = text.strip_prefix("--") {
            let Some((name, says, off)) = long(name).filter(|_| word.known().is_some()) else {
                return wrong(line, format!("{text} is not an option of curl that brunt knows; take it out"));
            };
            let value = if says.takes_value() { Some(value(&mut words, text, line)?) } else { None };
            take(&mut commands, name, says, off, value, line)?;
        } else {
            shorts(&mut commands, word, &mut words, line)?;
        }
    }
    for command in &mut commands {
        check(command)?;
        settle(command);
    }
    Ok(commands)
}

fn value(words: &mut std::slice::Iter<'_, Word>, option: &str, line: usize) -> Result<Word, ImportError> {
    match words.next() {
        Some(word) => Ok(word.clone()),
        None => wrong(line, format!("{option} wants a value, and nothing comes after it")),
    }
}

/// Reads grouped one-letter options; the last may have its value in the same word or the next.
fn shorts(
    commands: &mut Vec<Command>,
    word: &Word,
    words: &mut std::slice::Iter<'_, Word>,
    line: usize,
) -> Result<(), ImportError> {
    let text = word.beginning().to_owned();
    for (at, letter) in text.char_indices().skip(1) {
        let Some((name, says)) = short(letter) else {
            return wrong(line, format!("-{letter} is not an option of curl that brunt knows; take it out"));
        };
        if !says.takes_value() {
            take(commands, name, says, false, None, line)?;
            continue;
        }
        let rest = word.without(at + letter.len_utf8());
        let value = if rest.0.is_empty() { value(words, &format!("-{letter}"), line)? } else { rest };
        return take(commands, name, says, false, Some(value), line);
    }
    Ok(())
}

fn take(
    commands: &mut Vec<Command>,
    name: &'static str,
    says: Says,
    off: bool,
    value: Option<Word>,
    line: usize,
) -> Result<(), ImportError> {
    if says == Says::Next {
        commands.push(Command { line, ..Command::default() });
        return Ok(());
    }
    let Some(command) = commands.last_mut() else { return Ok(()) };
    let value = value.unwrap_or_default();
    let known = |value: &Word| match value.known() {
        Some(text) => Ok(text.to_owned()),
        None => wrong(line, format!("--{name} takes no variable of the shell here: write its value")),
    };
    match says {
        Says::Method => command.method = Some(known(&value)?),
        Says::Header => header(command, &value, line)?,
        Says::Data => command.data.push(data(&value, true)),
        Says::DataRaw => command.data.push(Data::Text(value)),
        Says::DataBinary => command.data.push(data(&value, false)),
        Says::DataEncoded => command.data.push(encoded(&value, name, line)?),
        Says::Json => {
            command.is_json = true;
            command.data.push(data(&value, false));
        }
        Says::Form => {
            let part = part(&value, &mut command.left, line)?;
            command.form.push(part);
        }
        Says::FormText => match value.split('=') {
            Some((name, value)) => command.form.push(Part { name: known(&name)?, value, ..Part::default() }),
            None => return wrong(line, "--form-string takes NAME=TEXT"),
        },
        Says::Query => command.is_query = !off,
        Says::UrlQuery => {
            command.url_query.push(match value.known().and_then(|text| text.strip_prefix('+')) {
                Some(text) => Data::Text(Word::plain(text)),
                None => encoded(&value, name, line)?,
            });
        }
        Says::Head => command.is_head = !off,
        Says::User => command.user = Some(value),
        Says::Bearer => command.made.push(("Authorization", Word::plain("Bearer ").joined(&value))),
        Says::Digest => command.is_digest = !off,
        Says::Basic => command.is_digest = false,
        Says::Cookie if value.known().is_some_and(|text| !text.contains('=')) => {
            command.keeps_cookies = true;
            command.cookie_file = Some(known(&value)?).filter(|file| !file.is_empty());
        }
        Says::Cookie => {
            command.cookies = Some(match command.cookies.take() {
                Some(before) => before.joined(&Word::plain("; ")).joined(&value),
                None => value,
            });
        }
        Says::CookieJar => {
            command.keeps_cookies = true;
            command.cookie_jar = value.known().map(str::to_owned);
            command.shown.push(format!("--{name}"));
        }
        Says::Range => {
            // curl makes a stretch up to the end of a number alone.
            let open = value.known().filter(|text| !text.contains('-')).map(|text| {
                let digits: String = text.trim_start().chars().take_while(char::is_ascii_digit).collect();
                Word::plain(format!("{}-", if digits.is_empty() { "0" } else { &digits }))
            });
            command.made.push(("Range", Word::plain("bytes=").joined(open.as_ref().unwrap_or(&value))));
        }
        Says::PathAsIs => command.is_path_as_is = !off,
        Says::Agent => command.made.push(("User-Agent", value)),
        Says::Referer => referer(command, value),
        Says::Url => command.urls.push(value),
        Says::Compressed => command.is_compressed = !off,
        Says::Insecure => command.is_insecure = !off,
        Says::Follow => command.follows = !off,
        Says::Literal => command.is_literal = !off,
        Says::Http(version) => command.http = Some(version),
        Says::Timeout => command.timeout = Some(known(&value)?),
        Says::ConnectTimeout => command.connect_timeout = Some(known(&value)?),
        Connecting(takes) => command.connecting.push((name, if takes { Some(known(&value)?) } else { None })),
        Shows(_) => command.shown.push(format!("--{}{name}", if off { "no-" } else { "" })),
        Left(_) => command.left.push(format!("--{}{name}: not moved", if off { "no-" } else { "" })),
        Refused(why) => return wrong(line, format!("--{name} cannot be moved: {why}")),
        Says::Next => {}
    }
    Ok(())
}

/// Takes the value of `-e`: no text sends no field, and `;auto` behind it names the page that redirects.
fn referer(command: &mut Command, mut value: Word) {
    if let Some(text) = value.known().and_then(|text| text.strip_suffix(";auto")) {
        value = Word::plain(text);
        command.left.push("-e ;auto: the page that redirects is not named".to_owned());
    }
    if value.known() != Some("") {
        command.made.push(("Referer", value));
    }
}

/// Reads `Name: value`; `Name;` has an empty value; `Name:` is a field that curl leaves out.
fn header(command: &mut Command, field: &Word, line: usize) -> Result<(), ImportError> {
    if field.beginning().starts_with('@') {
        return wrong(line, "-H @FILE reads header fields from a file: write them into the command");
    }
    let (name, value) = match field.split(':') {
        Some((name, value)) => (name, value),
        None => match field.known().and_then(|text| text.strip_suffix(';')) {
            Some(name) => (Word::plain(name), Word::default()),
            None => return wrong(line, "-H takes 'Name: value'"),
        },
    };
    let Some(name) = name.known().map(str::trim).filter(|name| is_token(name)) else {
        return wrong(line, "-H takes 'Name: value', with a name of letters, digits and -");
    };
    let spaces = value.beginning().len() - value.beginning().trim_start().len();
    let value = value.without(spaces);
    let is_empty = value.0.is_empty();
    if is_empty && field.known().is_some_and(|text| text.trim_end().ends_with(':')) {
        let lower = name.to_ascii_lowercase();
        if matches!(lower.as_str(), "content-type" | "accept" | "user-agent") {
            command.removed.push(lower);
            return Ok(());
        }
        command.left.push(format!(
            "-H '{name}:' leaves out a header field of curl's own; brunt sends none but Host and Content-Length"
        ));
    } else {
        command.headers.push((name.to_owned(), value));
    }
    Ok(())
}

/// Reads the value of `-d`: a text, or `@FILE`.
fn data(value: &Word, without_line_ends: bool) -> Data {
    match value.known().and_then(|text| text.strip_prefix('@')) {
        Some(file) => Data::File(file.to_owned(), without_line_ends),
        None => Data::Text(value.clone()),
    }
}

/// Reads the value of `--data-urlencode` or `--url-query`: `text`, `=text`, `name=text`, `@FILE`, `name@FILE`.
fn encoded(value: &Word, option: &str, line: usize) -> Result<Data, ImportError> {
    let equals = value.split('=');
    if let Some((name, value)) = equals {
        return match name.known() {
            Some(name) => Ok(Data::Encoded(name.to_owned(), value)),
            None => wrong(line, format!("--{option} takes no variable of the shell for a name")),
        };
    }
    if value.split('@').is_some() {
        return wrong(line, format!("--{option} cannot read a file here: write its text"));
    }
    Ok(Data::Encoded(String::new(), value.clone()))
}

/// Reads the value of `-F`: `name=text`, `name=@FILE;type=…;filename=…`, `name=<FILE`, with texts in quotes or without.
/// What curl leaves out is added to `left`.
fn part(field: &Word, left: &mut Vec<String>, line: usize) -> Result<Part, ImportError> {
    let Some((name, value)) = field.split('=') else { return wrong(line, "-F takes NAME=TEXT or NAME=@FILE") };
    let Some(name) = name.known().map(str::to_owned) else {
        return wrong(line, "-F takes no variable of the shell for a name");
    };
    let Some(text) = value.known().map(str::to_owned) else { return Ok(Part { name, value, ..Part::default() }) };
    let mut part = Part { name, ..Part::default() };
    let is_sent_as_file = text.starts_with('@');
    let content = text.strip_prefix(['@', '<']).unwrap_or(&text);
    let (content, mut rest) = quoted_word(content, if is_sent_as_file { &[';', ','] } else { &[';'] });
    if rest.starts_with(',') {
        return wrong(line, format!("-F {}: several files in one field: write an -F for each", part.name));
    }
    let mut in_type = false;
    while let Some(parameter) = rest.strip_prefix(';') {
        let parameter = parameter.trim_start();
        let is = |name: &str| parameter.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name));
        let end = parameter.find(';').unwrap_or(parameter.len());
        let (whole, after) = parameter.split_at(end);
        rest = after;
        match &mut part.content_type {
            None if is("type=") => {
                part.content_type = whole.get(5..).map(|kind| kind.trim().to_owned());
                in_type = true;
            }
            _ if is("filename=") => {
                let (own, after) = quoted_word(parameter.get(9..).unwrap_or_default(), &[';']);
                part.filename = Some(own);
                (rest, in_type) = (after, false);
            }
            _ if is("headers=") || is("encoder=") => {
                return wrong(line, format!("-F {}: ;headers= and ;encoder= cannot be moved", part.name));
            }
            // A parameter of the type, such as its charset.
            Some(kind) if in_type => {
                kind.push(';');
                kind.push_str(whole.trim_end());
            }
            _ if whole.is_empty() => {}
            _ => left.push(format!("-F {}: curl leaves out ;{whole}, since quotes do not enclose it", part.name)),
        }
    }
    if is_sent_as_file {
        let own = content.rsplit('/').next().unwrap_or(&content).to_owned();
        part.content_type = part.content_type.or_else(|| media_type(&own, true).map(str::to_owned));
        part.filename.get_or_insert(own);
        part.file = Some(content);
    } else if text.starts_with('<') {
        part.file = Some(content);
    } else {
        part.content_type = part
            .content_type
            .or_else(|| part.filename.as_deref().and_then(|name| media_type(name, true)).map(str::to_owned));
        part.value = Word::plain(content);
    }
    Ok(part)
}

/// A word in quotes, or up to one of `ends`; and the text from that end on.
fn quoted_word<'t>(text: &'t str, ends: &[char]) -> (String, &'t str) {
    let Some(inner) = text.strip_prefix('"') else {
        let (word, rest) = text.split_at(text.find(ends).unwrap_or(text.len()));
        return (word.trim_end_matches(' ').to_owned(), rest);
    };
    let (mut word, mut is_escaped) = (String::new(), false);
    for (at, letter) in inner.char_indices() {
        match letter {
            '"' if !is_escaped => {
                let rest = inner.get(at..).unwrap_or_default();
                return (word, rest.get(rest.find(ends).unwrap_or(rest.len())..).unwrap_or_default());
            }
            '\\' if !is_escaped => is_escaped = true,
            _ => {
                if is_escaped && !matches!(letter, '"' | '\\') {
                    word.push('\\');
                }
                word.push(letter);
                is_escaped = false;
            }
        }
    }
    // A quote that does not end belongs to the text.
    let (word, rest) = text.split_at(text.find(ends).unwrap_or(text.len()));
    (word.to_owned(), rest)
}

/// The type of a form with files.
const FORM: &str = "multipart/form-data";

/// Applies what one option says of another: header fields of the command come before those that other options make.
fn settle(command: &mut Command) {
    // Of one option, given twice, the last counts.
    if command.is_digest && command.made.iter().any(|(name, _)| *name == "Authorization") {
        command
            .left
            .push("--oauth2-bearer with --digest: curl waits for a challenge; the token is sent at once".to_owned());
    }
    let mut made: Vec<(String, Word)> = Vec::new();
    for (name, value) in std::mem::take(&mut command.made).into_iter().rev() {
        let is_given = command.says_of(&name.to_ascii_lowercase()) || made.iter().any(|(known, _)| known == name);
        if !is_given && !value.0.is_empty() {
            made.push((name.to_owned(), value));
        }
    }
    command.headers.extend(made.into_iter().rev());
    if command.has_header("cookie") {
        command.cookies = None;
    }
    if command.has_header("authorization") {
        command.user = None;
    }
    if command.follows && command.method.as_deref().is_some_and(|method| !matches!(method, "GET" | "HEAD")) {
        command
            .left
            .push("-X with -L: curl keeps the method behind a redirect; brunt goes on as browsers do".to_owned());
    }
    let is_other_form = |(name, kind): &(String, Word)| {
        name.eq_ignore_ascii_case("content-type") && !kind.beginning().trim().to_ascii_lowercase().starts_with(FORM)
    };
    let has_boundary = |(name, kind): &(String, Word)| {
        name.eq_ignore_ascii_case("content-type") && kind.beginning().to_ascii_lowercase().contains("boundary=")
    };
    if !command.form.is_empty() && command.headers.iter().any(is_other_form) {
        command.left.push(format!("-H 'Content-Type: …' with -F: the form is sent as {FORM}"));
    } else if !command.form.is_empty() && command.headers.iter().any(has_boundary) {
        command.left.push(
            "-H 'Content-Type: …; boundary=…' with -F: curl adds a boundary of its own, which its body has; here the body has yours".to_owned(),
        );
    }
    if command.is_query && !command.data.is_empty() && !command.url_query.is_empty() {
        command.left.push("--url-query: curl sends what -G makes of the data in its place".to_owned());
    }
    if command.is_path_as_is {
        return;
    }
    for url in &mut command.urls {
        if let Some(known) = url.known().filter(|known| known.contains("/.")) {
            *url = Word::plain(without_dots(known));
        }
    }
}

/// A URL whose path has no segments `.` and `..` (RFC 3986, section 5.2.4).
fn without_dots(url: &str) -> String {
    let begin = url.find("://").map_or(0, |at| at + 3);
    let end = url.get(begin..).and_then(|rest| rest.find(['?', '#'])).map_or(url.len(), |at| begin + at);
    let (whole, behind) = url.split_at(end);
    let Some(path_at) = whole.get(begin..).and_then(|rest| rest.find('/')).map(|at| begin + at) else {
        return url.to_owned();
    };
    let (origin, path) = whole.split_at(path_at);
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/').skip(1) {
        match segment {
            "." => {}
            ".." => drop(kept.pop()),
            other => kept.push(other),
        }
    }
    let is_folder = path.ends_with("/.") || path.ends_with("/..");
    let last = if is_folder && !kept.is_empty() { "/" } else { "" };
    format!("{origin}/{}{last}{behind}", kept.join("/"))
}

fn check(command: &Command) -> Result<(), ImportError> {
    let line = command.line;
    if command.urls.is_empty() {
        return wrong(line, "this curl has no URL");
    }
    if !command.data.is_empty() && !command.form.is_empty() {
        return wrong(line, "this curl has both -d and -F");
    }
    if let Some(method) = command.method.as_deref() {
        let upper = method.to_ascii_uppercase();
        if !is_token(method) {
            return wrong(line, format!("-X {method} is not a method"));
        }
        if upper != method && METHODS.contains(&upper.as_str()) {
            return wrong(line, format!("-X {method}: methods are case-sensitive: write -X {upper}"));
        }
    }
    for url in &command.urls {
        let text = url.known().unwrap_or_default();
        let is_address = text.contains("://[") || text.starts_with('[');
        if !command.is_literal && (text.contains(['{', '}']) || text.contains(['[', ']']) && !is_address) {
            return wrong(line, "[…] and {…} in a URL stand for several: write each, or give -g");
        }
    }
    Ok(())
}
