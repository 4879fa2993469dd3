//! The options of curl: those of the request, of the connection, and of curl's own output.

use super::command::{Command, Data, Part, Word};
use crate::ImportError;
use crate::encoded::is_token;

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
    ("path-as-is", None, Shows(false)),
    ("tcp-nodelay", None, Shows(false)),
    ("keepalive-time", None, Shows(true)),
    ("disable", Some('q'), Shows(false)),
    ("parallel", Some('Z'), Shows(false)),
    ("cookie-jar", Some('c'), Shows(true)),
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
    ("range", Some('r'), Left(true)),
    ("no-keepalive", None, Left(false)),
    ("post301", None, Left(false)),
    ("post302", None, Left(false)),
    ("post303", None, Left(false)),
    ("ciphers", None, Left(true)),
    ("tlsv1.2", None, Left(false)),
    ("tlsv1.3", None, Left(false)),
    ("tls-max", None, Left(true)),
    ("aws-sigv4", None, Left(true)),
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
    for command in &commands {
        check(command)?;
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
        Says::DataEncoded => command.data.push(encoded(&value, line)?),
        Says::Json => {
            command.is_json = true;
            command.data.push(data(&value, false));
        }
        Says::Form => command.form.push(part(&value, line)?),
        Says::FormText => match value.split('=') {
            Some((name, value)) => command.form.push(Part { name: known(&name)?, value, ..Part::default() }),
            None => return wrong(line, "--form-string takes NAME=TEXT"),
        },
        Says::Query => command.is_query = !off,
        Says::UrlQuery => {
            command.left.push("--url-query: write it into the URL".to_owned());
        }
        Says::Head => command.is_head = !off,
        Says::User => command.user = Some(value),
        Says::Bearer => command.headers.push(("Authorization".to_owned(), Word::plain("Bearer ").joined(&value))),
        Says::Digest => command.is_digest = !off,
        Says::Basic => command.is_digest = false,
        Says::Cookie if value.known().is_some_and(|text| !text.contains('=')) => {
            command.left.push(format!("-b {}: a file of cookies is not read", known(&value)?));
        }
        Says::Cookie => command.cookies.push(value),
        Says::Agent => command.headers.push(("User-Agent".to_owned(), value)),
        Says::Referer => command.headers.push(("Referer".to_owned(), value)),
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

/// Reads the value of `--data-urlencode`: `text`, `=text`, `name=text`, `@FILE`, `name@FILE`.
fn encoded(value: &Word, line: usize) -> Result<Data, ImportError> {
    let equals = value.split('=');
    if let Some((name, value)) = equals {
        return match name.known() {
            Some(name) => Ok(Data::Encoded(name.to_owned(), value)),
            None => wrong(line, "--data-urlencode takes no variable of the shell for a name"),
        };
    }
    if value.split('@').is_some() {
        return wrong(line, "--data-urlencode cannot read a file here: write its text");
    }
    Ok(Data::Encoded(String::new(), value.clone()))
}

/// Reads the value of `-F`: `name=text`, `name=@FILE;type=…;filename=…`, `name=<FILE`.
fn part(field: &Word, line: usize) -> Result<Part, ImportError> {
    let Some((name, value)) = field.split('=') else { return wrong(line, "-F takes NAME=TEXT or NAME=@FILE") };
    let Some(name) = name.known().map(str::to_owned) else {
        return wrong(line, "-F takes no variable of the shell for a name");
    };
    let Some(text) = value.known().map(str::to_owned) else { return Ok(Part { name, value, ..Part::default() }) };
    let mut part = Part { name, ..Part::default() };
    let (content, parameters) = text.split_once(';').unwrap_or((&text, ""));
    for parameter in parameters.split(';') {
        match parameter.trim().split_once('=') {
            Some(("type", kind)) => part.content_type = Some(kind.trim_matches('"').to_owned()),
            Some(("filename", name)) => part.filename = Some(name.trim_matches('"').to_owned()),
            _ if parameter.is_empty() => {}
            // The semicolon belongs to the text.
            _ => {
                part.value = value;
                return Ok(part);
            }
        }
    }
    if let Some(file) = content.strip_prefix('@') {
        let own = file.rsplit('/').next().unwrap_or(file).to_owned();
        part.filename.get_or_insert(own);
        part.file = Some(file.to_owned());
    } else if let Some(file) = content.strip_prefix('<') {
        part.file = Some(file.to_owned());
    } else {
        part.value = Word::plain(content);
    }
    Ok(part)
}

fn check(command: &Command) -> Result<(), ImportError> {
    let line = command.line;
    if command.urls.is_empty() {
        return wrong(line, "this curl has no URL");
    }
    if !command.data.is_empty() && !command.form.is_empty() {
        return wrong(line, "this curl has both -d and -F");
    }
    if let Some(method) = command.method.as_deref().filter(|method| !is_token(method)) {
        return wrong(line, format!("-X {method} is not a method"));
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
