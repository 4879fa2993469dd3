//! The options of curl: those of the request, of the connection, and of curl's own output.

use std::collections::VecDeque;

use super::command::{Bit, Command, Data, FormPart, Word};
use super::shell::Input;
use super::{config, glob};
use crate::call::METHODS;
use crate::encoded::{component, is_token, media_type, origin_and_path};
use crate::{Files, ImportError};

/// The most files of options that a command reads.
const MOST_CONFIGS: usize = 20;

/// What a command reads besides its words.
pub(super) struct Around<'f> {
    pub(super) files: Files<'f>,
    /// Its standard input.
    pub(super) input: Option<Input>,
    /// The line on which it begins.
    pub(super) line: usize,
}

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
    From,
    Target,
    Upload,
    Config,
    Aws,
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
    ("http1.0", Some('0'), Refused("brunt speaks HTTP/1.1, 2 and 3")),
    ("http3", None, Says::Http("3")),
    ("http3-only", None, Says::Http("3")),
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
    ("aws-sigv4", None, Says::Aws),
    ("expect100-timeout", None, Left(true)),
    ("upload-file", Some('T'), Says::Upload),
    ("config", Some('K'), Says::Config),
    ("continue-at", Some('C'), Says::From),
    ("request-target", None, Says::Target),
    ("time-cond", Some('z'), Refused("write the field: -H 'If-Modified-Since: …'")),
    ("remote-name-all", None, Shows(false)),
    ("remote-time", Some('R'), Shows(false)),
    ("remove-on-error", None, Shows(false)),
    ("clobber", None, Shows(false)),
    ("raw", None, Shows(false)),
    ("xattr", None, Shows(false)),
    ("libcurl", None, Shows(true)),
    ("etag-save", None, Shows(true)),
    ("create-file-mode", None, Shows(true)),
    ("parallel-max", None, Shows(true)),
    ("parallel-immediate", None, Shows(false)),
    ("suppress-connect-headers", None, Shows(false)),
    ("happy-eyeballs-timeout-ms", None, Shows(true)),
    ("http0.9", None, Shows(false)),
    ("proto", None, Shows(true)),
    ("proto-redir", None, Shows(true)),
    ("ssl", None, Shows(false)),
    ("ssl-reqd", None, Shows(false)),
    ("ssl-no-revoke", None, Shows(false)),
    ("ssl-revoke-best-effort", None, Shows(false)),
    ("sessionid", None, Shows(false)),
    ("tls-earlydata", None, Left(false)),
    ("max-filesize", None, Left(true)),
    ("rate", None, Left(true)),
    ("etag-compare", None, Left(true)),
    ("tr-encoding", None, Left(false)),
    ("tcp-fastopen", None, Left(false)),
    ("alpn", None, Left(false)),
    ("npn", None, Left(false)),
    ("tlsv1", Some('1'), Left(false)),
    ("tlsv1.0", None, Left(false)),
    ("tlsv1.1", None, Left(false)),
    ("tls13-ciphers", None, Left(true)),
    ("curves", None, Left(true)),
    ("pass", None, Left(true)),
    ("cert-type", None, Left(true)),
    ("key-type", None, Left(true)),
    ("capath", None, Left(true)),
    ("crlfile", None, Left(true)),
    ("pinnedpubkey", None, Left(true)),
    ("cert-status", None, Left(false)),
    ("dns-servers", None, Left(true)),
    ("doh-url", None, Left(true)),
    ("local-port", None, Left(true)),
    ("alt-svc", None, Left(true)),
    ("hsts", None, Left(true)),
    ("proxytunnel", Some('p'), Left(false)),
    ("proxy-user", Some('U'), Left(true)),
    ("proxy-header", None, Left(true)),
    ("proxy-insecure", None, Left(false)),
    ("proxy-cacert", None, Left(true)),
    ("preproxy", None, Left(true)),
    ("socks4", None, Left(true)),
    ("socks4a", None, Left(true)),
    ("socks5", None, Left(true)),
    ("socks5-hostname", None, Left(true)),
    ("haproxy-protocol", None, Left(false)),
    ("netrc-file", None, Refused("write the user by -u")),
    ("netrc-optional", None, Refused("write the user by -u")),
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

/// The commands in the words behind `curl`: one, another for each `--next` and for each file of `-T`.
pub(super) fn read(words: &[Word], around: &Around) -> Result<Vec<Command>, ImportError> {
    let line = around.line;
    let mut commands = vec![Command { line, ..Command::default() }];
    let mut words: VecDeque<Word> = words.iter().cloned().collect();
    let mut only_urls = false;
    let mut configs = 0;
    while let Some(word) = words.pop_front() {
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
            take(&mut commands, name, says, off, value, around)?;
        } else {
            shorts(&mut commands, &word, &mut words, around)?;
        }
        if let Some(file) = commands.last_mut().and_then(|command| command.config.take()) {
            configs += 1;
            if configs > MOST_CONFIGS {
                return wrong(line, format!("-K: more than {MOST_CONFIGS} files of options"));
            }
            for word in config::words(&content(&file, "-K", around)?).into_iter().rev() {
                words.push_front(Word::plain(word));
            }
        }
    }
    for command in &mut commands {
        check(command)?;
        expand(command)?;
        settle(command);
    }
    let mut each = Vec::new();
    for command in commands {
        if command.uploads.is_empty() {
            each.push(command);
        } else {
            uploaded(&command, around, &mut each)?;
        }
    }
    Ok(each)
}

/// The text of a file that an option names, or of standard input.
fn content(file: &str, option: &str, around: &Around) -> Result<String, ImportError> {
    let line = around.line;
    let file = match (file, &around.input) {
        ("-", Some(Input::Text(word))) => match word.known() {
            Some(text) => return Ok(text.to_owned()),
            None => return wrong(line, format!("{option} - takes no variable of the shell: write its value")),
        },
        ("-", Some(Input::File(word))) => word.known().unwrap_or_default(),
        ("-", None) => return wrong(line, format!("{option} reads standard input: write it into the command")),
        (file, _) => file,
    };
    match (around.files)(file).map(String::from_utf8) {
        Ok(Ok(text)) => Ok(text),
        Ok(Err(_)) => wrong(line, format!("{option} {file}: it is not text in UTF-8")),
        Err(error) => wrong(line, format!("{option} {file}: cannot read it: {error}")),
    }
}

/// Writes each URL for which `[1-3]` and `{a,b}` stand, and takes the path of `--request-target` in its place.
fn expand(command: &mut Command) -> Result<(), ImportError> {
    if !command.is_literal {
        let mut urls = Vec::new();
        for url in &command.urls {
            match glob::urls(url) {
                Ok(several) => urls.extend(several),
                Err(problem) => return wrong(command.line, format!("the URL: {problem}")),
            }
        }
        command.urls = urls;
    }
    let Some(path) = &command.target else { return Ok(()) };
    if !path.starts_with('/') {
        return wrong(
            command.line,
            format!("--request-target {path} cannot be moved: it is no path that begins with /"),
        );
    }
    for url in &mut command.urls {
        let whole = url.known().map(|url| if url.contains("://") { url.to_owned() } else { format!("http://{url}") });
        match whole.as_deref().and_then(origin_and_path) {
            Some((origin, _)) => *url = Word::plain(format!("{origin}{path}")),
            None => return wrong(command.line, "--request-target: the URL before it holds a variable of the shell"),
        }
    }
    command.is_path_as_is = true;
    Ok(())
}

/// Adds the commands of `-T`: each file goes to a URL, and further URLs are asked for without one.
fn uploaded(command: &Command, around: &Around, each: &mut Vec<Command>) -> Result<(), ImportError> {
    if !command.data.is_empty() || !command.form.is_empty() || command.is_head {
        return wrong(command.line, "this curl has both -T and -d, -F or -I");
    }
    for (place, url) in command.urls.iter().enumerate() {
        let Some(file) = command.uploads.get(place) else {
            each.push(Command { urls: vec![url.clone()], uploads: Vec::new(), ..command.clone() });
            continue;
        };
        let files = if command.is_literal { Ok(vec![file.clone()]) } else { glob::urls(file) };
        for file in files.or_else(|problem| wrong(command.line, format!("-T: {problem}")))? {
            let Some(name) = file.known() else {
                return wrong(command.line, "-T takes no variable of the shell here: write its value");
            };
            let mut one = Command { urls: vec![url.clone()], uploads: Vec::new(), ..command.clone() };
            if matches!(name, "-" | ".") {
                one.left.push(format!("-T {name}: curl sends its input in chunks; here it is sent whole"));
                one.upload = Some(data(&Word::plain("@-"), false, around));
            } else {
                one.upload = Some(Data::File(name.to_owned(), false));
                one.urls = vec![with_name(url, name.rsplit('/').next().unwrap_or(name))];
            }
            each.push(one);
        }
    }
    Ok(())
}

/// A URL with the name of a file behind it, if its path ends with a slash.
fn with_name(url: &Word, name: &str) -> Word {
    let Some(text) = url.known() else { return url.clone() };
    let behind = text.find("://").map_or(0, |at| at + 3);
    let end = text.get(behind..).and_then(|rest| rest.find(['?', '#'])).map_or(text.len(), |at| behind + at);
    let (path, rest) = text.split_at(end);
    let slash = match path.get(behind..).unwrap_or_default() {
        path if path.ends_with('/') => "",
        path if !path.contains('/') => "/",
        _ => return url.clone(),
    };
    Word::plain(format!("{path}{slash}{}{rest}", component(name)))
}

fn value(words: &mut VecDeque<Word>, option: &str, line: usize) -> Result<Word, ImportError> {
    match words.pop_front() {
        Some(word) => Ok(word),
        None => wrong(line, format!("{option} wants a value, and nothing comes after it")),
    }
}

/// Reads grouped one-letter options; the last may have its value in the same word or the next.
fn shorts(
    commands: &mut Vec<Command>,
    word: &Word,
    words: &mut VecDeque<Word>,
    around: &Around,
) -> Result<(), ImportError> {
    let line = around.line;
    let text = word.beginning().to_owned();
    for (at, letter) in text.char_indices().skip(1) {
        let Some((name, says)) = short(letter) else {
            return wrong(line, format!("-{letter} is not an option of curl that brunt knows; take it out"));
        };
        if !says.takes_value() {
            take(commands, name, says, false, None, around)?;
            continue;
        }
        let rest = word.without(at + letter.len_utf8());
        let value = if rest.0.is_empty() { value(words, &format!("-{letter}"), line)? } else { rest };
        return take(commands, name, says, false, Some(value), around);
    }
    Ok(())
}

fn take(
    commands: &mut Vec<Command>,
    name: &'static str,
    says: Says,
    off: bool,
    value: Option<Word>,
    around: &Around,
) -> Result<(), ImportError> {
    let line = around.line;
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
        Says::Header => headers(command, &value, around)?,
        Says::Data => command.data.push(data(&value, true, around)),
        Says::DataRaw => command.data.push(Data::Text(value)),
        Says::DataBinary => command.data.push(data(&value, false, around)),
        Says::DataEncoded => command.data.push(encoded(&value, name, around)?),
        Says::Json => {
            command.is_json = true;
            command.data.push(data(&value, false, around));
        }
        Says::Form => {
            let part = part(&value, &mut command.left, line)?;
            command.form.push(part);
        }
        Says::FormText => match value.split('=') {
            Some((name, value)) => command.form.push(FormPart { name: known(&name)?, value, ..FormPart::default() }),
            None => return wrong(line, "--form-string takes NAME=TEXT"),
        },
        Says::Query => command.is_query = !off,
        Says::UrlQuery => {
            command.url_query.push(match value.known().and_then(|text| text.strip_prefix('+')) {
                Some(text) => Data::Text(Word::plain(text)),
                None => encoded(&value, name, around)?,
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
        Says::From => match known(&value)?.as_str() {
            "0" => {}
            "-" => command.left.push("-C -: curl goes on behind the file that it has; all is asked for".to_owned()),
            from if from.bytes().all(|byte| byte.is_ascii_digit()) => {
                command.made.push(("Range", Word::plain(format!("bytes={from}-"))));
            }
            from => return wrong(line, format!("-C {from} is not a number of bytes")),
        },
        Says::Target => command.target = Some(known(&value)?),
        Says::Upload => command.uploads.push(value),
        Says::Config => command.config = Some(known(&value)?),
        Says::Aws => command.aws = Some(known(&value)?),
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

/// Reads a header field, or those of `@FILE`.
fn headers(command: &mut Command, field: &Word, around: &Around) -> Result<(), ImportError> {
    let Some(file) = field.beginning().strip_prefix('@') else { return header(command, field, around.line) };
    if field.known().is_none() {
        return wrong(around.line, "-H @FILE takes no variable of the shell: write its value");
    }
    for line in content(file, "-H @", around)?.lines().filter(|line| !line.is_empty()) {
        header(command, &Word::plain(line), around.line)?;
    }
    Ok(())
}

/// Reads `Name: value`; `Name;` has an empty value; `Name:` is a field that curl leaves out.
fn header(command: &mut Command, field: &Word, line: usize) -> Result<(), ImportError> {
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
    } else if !(name.eq_ignore_ascii_case("host") && command.has_header("host")) {
        // curl sends the first Host alone.
        command.headers.push((name.to_owned(), value));
    }
    Ok(())
}

/// Reads the value of `-d`: a text, `@FILE`, or `@-` for standard input.
fn data(value: &Word, without_line_ends: bool, around: &Around) -> Data {
    match value.known().and_then(|text| text.strip_prefix('@')) {
        Some("-") => match &around.input {
            Some(Input::Text(word)) if without_line_ends => Data::Text(on_one_line(word)),
            Some(Input::Text(word)) => Data::Text(word.clone()),
            Some(Input::File(file)) => Data::File(file.known().unwrap_or("-").to_owned(), without_line_ends),
            None => Data::File("-".to_owned(), without_line_ends),
        },
        Some(file) => Data::File(file.to_owned(), without_line_ends),
        None => Data::Text(value.clone()),
    }
}

/// A text without its line ends.
fn on_one_line(word: &Word) -> Word {
    let bit = |bit: &Bit| match bit {
        Bit::Plain(text) => Bit::Plain(text.replace(['\r', '\n', '\0'], "")),
        variable @ Bit::Variable(_) => variable.clone(),
    };
    Word(word.0.iter().map(bit).filter(|bit| *bit != Bit::Plain(String::new())).collect())
}

/// Reads the value of `--data-urlencode` or `--url-query`: `text`, `=text`, `name=text`, `@FILE`, `name@FILE`.
fn encoded(value: &Word, option: &str, around: &Around) -> Result<Data, ImportError> {
    let line = around.line;
    let equals = value.split('=');
    if let Some((name, value)) = equals {
        return match name.known() {
            Some(name) => Ok(Data::Encoded(name.to_owned(), value)),
            None => wrong(line, format!("--{option} takes no variable of the shell for a name")),
        };
    }
    if let Some((name, file)) = value.split('@') {
        let (Some(name), Some(file)) = (name.known(), file.known()) else {
            return wrong(line, format!("--{option} takes no variable of the shell for a file: write its value"));
        };
        return Ok(match (file, &around.input) {
            ("-", Some(Input::Text(word))) => Data::Encoded(name.to_owned(), word.clone()),
            ("-", Some(Input::File(word))) => {
                Data::EncodedFile(name.to_owned(), word.known().unwrap_or(file).to_owned())
            }
            _ => Data::EncodedFile(name.to_owned(), file.to_owned()),
        });
    }
    Ok(Data::Encoded(String::new(), value.clone()))
}

/// Reads the value of `-F`: `name=text`, `name=@FILE;type=…;filename=…`, `name=<FILE`, with texts in quotes or without.
/// What curl leaves out is added to `left`.
fn part(field: &Word, left: &mut Vec<String>, line: usize) -> Result<FormPart, ImportError> {
    let Some((name, value)) = field.split('=') else { return wrong(line, "-F takes NAME=TEXT or NAME=@FILE") };
    let Some(name) = name.known().map(str::to_owned) else {
        return wrong(line, "-F takes no variable of the shell for a name");
    };
    if name.is_empty() {
        return wrong(line, "-F =TEXT cannot be moved: give the part a name");
    }
    // Blanks before the text are left out.
    let value = value.without(value.beginning().len() - value.beginning().trim_start().len());
    let Some(text) = value.known().map(str::to_owned) else {
        let has_more = value.0.iter().any(|bit| matches!(bit, Bit::Plain(text) if text.contains(';')));
        if value.beginning().starts_with(['@', '<', '"']) || has_more {
            return wrong(line, format!("-F {name} takes no variable of the shell beside @, < or ;: write its value"));
        }
        return Ok(FormPart { name, value, ..FormPart::default() });
    };
    let mut part = FormPart { name, ..FormPart::default() };
    let is_sent_as_file = text.starts_with('@');
    let content = text.strip_prefix(['@', '<']).unwrap_or(&text);
    let (content, mut rest) = quoted_word(content, if is_sent_as_file { &[';', ','] } else { &[';'] });
    if rest.starts_with(',') {
        return wrong(line, format!("-F {}: several files in one field: write an -F for each", part.name));
    }
    let mut in_type = false;
    while let Some(behind) = rest.strip_prefix(';') {
        let parameter = behind.trim_start();
        let blanks = behind.get(..behind.len() - parameter.len()).unwrap_or_default();
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
            _ if is("headers=") => {
                let given = parameter.get(8..).unwrap_or_default();
                let (field, after) = quoted_word(given, &[';']);
                let Some((name, value)) = field.split_once(':').filter(|(name, _)| is_token(name.trim())) else {
                    return wrong(line, format!("-F {}: ;headers= takes 'Name: value' here", part.name));
                };
                part.headers.push((name.trim().to_owned(), value.trim().to_owned()));
                (rest, in_type) = (after, false);
            }
            _ if is("encoder=") => return wrong(line, format!("-F {}: ;encoder= cannot be moved", part.name)),
            // A parameter of the type, such as its charset.
            Some(kind) if in_type => {
                kind.push(';');
                kind.push_str(blanks);
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
    Ok(())
}
