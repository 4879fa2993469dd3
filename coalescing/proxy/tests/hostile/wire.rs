//! HTTP/1.1 as the strictest of peers reads it: whatever could be read in two ways is an error. Written from RFC 9112 alone,
//! without a line of the proxy or its libraries, so that it can judge them.

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its first line.
    pub start: String,
    /// Its fields, with their names in lower case.
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Message {
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields.iter().filter(move |(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    /// The status of an answer.
    pub fn status(&self) -> u16 {
        self.start.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    /// The target of a request.
    pub fn target(&self) -> &str {
        self.start.split(' ').nth(1).unwrap_or("")
    }
}

/// What has been read of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    pub messages: Vec<Message>,
    /// What is left is the beginning of another.
    pub is_cut: bool,
}

/// How a message ends.
enum Length {
    Bytes(usize),
    Chunked,
    /// With its connection.
    Close,
}

/// A part of a message that is not all there, or is wrong.
enum Fault {
    Cut,
    Wrong(String),
}

type Parsed<T> = Result<T, Fault>;

fn wrong<T>(text: impl Into<String>) -> Parsed<T> {
    Err(Fault::Wrong(text.into()))
}

/// Requests, as an upstream reads them.
pub fn requests(bytes: &[u8]) -> Result<Reading, String> {
    read(bytes, &mut |message, _| {
        let mut words = message.start.split(' ');
        let (method, target, version) = (words.next(), words.next(), words.next());
        let is_request = method.is_some_and(|method| !method.is_empty() && method.bytes().all(is_token))
            && target.is_some_and(|target| target.starts_with('/') || target == "*")
            && version == Some("HTTP/1.1")
            && words.next().is_none();
        if !is_request {
            return wrong(format!("no request line: {:?}", message.start));
        }
        if message.values("host").count() != 1 {
            return wrong("not one Host");
        }
        Ok(match length(message)? {
            Length::Close => Length::Bytes(0),
            length => length,
        })
    })
}

/// Answers, as a client reads them. `is_head` says of each request whether it was HEAD; where it says nothing, it was not.
pub fn answers(bytes: &[u8], is_head: &[bool]) -> Result<Reading, String> {
    let mut number = 0;
    read(bytes, &mut |message, _| {
        let status = message.status();
        if !message.start.starts_with("HTTP/1.") || !(100..1000).contains(&status) {
            return wrong(format!("no status line: {:?}", message.start));
        }
        let length = length(message)?;
        if (100..200).contains(&status) {
            return Ok(Length::Bytes(0));
        }
        let has_none = is_head.get(number).copied().unwrap_or(false) || status == 204 || status == 304;
        number += 1;
        Ok(if has_none { Length::Bytes(0) } else { length })
    })
}

fn read(bytes: &[u8], judge: &mut dyn FnMut(&Message, usize) -> Parsed<Length>) -> Result<Reading, String> {
    let mut reading = Reading::default();
    let mut rest = bytes;
    while !rest.is_empty() {
        match message(&mut rest, reading.messages.len(), judge) {
            Ok(message) => reading.messages.push(message),
            Err(Fault::Cut) => {
                reading.is_cut = true;
                break;
            }
            Err(Fault::Wrong(text)) => return Err(text),
        }
    }
    Ok(reading)
}

fn message(
    rest: &mut &[u8],
    number: usize,
    judge: &mut dyn FnMut(&Message, usize) -> Parsed<Length>,
) -> Parsed<Message> {
    let start = text(line(rest)?)?;
    let mut message = Message { start, fields: fields(rest)?, body: Vec::new() };
    match judge(&message, number)? {
        Length::Bytes(length) => message.body = take(rest, length)?.to_vec(),
        Length::Close => message.body = std::mem::take(rest).to_vec(),
        Length::Chunked => loop {
            let size = text(line(rest)?)?;
            if size.is_empty() || !size.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return wrong(format!("no chunk size: {size:?}"));
            }
            let size = usize::from_str_radix(&size, 16).map_err(|_| Fault::Wrong(format!("chunk of {size}")))?;
            if size == 0 {
                fields(rest)?;
                break;
            }
            message.body.extend_from_slice(take(rest, size)?);
            if take(rest, 2)? != b"\r\n" {
                return wrong("a chunk does not end where it should");
            }
        },
    }
    Ok(message)
}

/// Everything up to CR LF, in which neither of the two is alone.
fn line<'a>(rest: &mut &'a [u8]) -> Parsed<&'a [u8]> {
    let Some(at) = rest.windows(2).position(|two| two == b"\r\n") else {
        // A CR at the end may be the first half.
        let all = rest.strip_suffix(b"\r").unwrap_or(rest);
        return if all.iter().any(|byte| b"\r\n".contains(byte)) { wrong("CR or LF alone") } else { Err(Fault::Cut) };
    };
    let (line, after) = rest.split_at(at);
    *rest = &after[2..];
    if line.iter().any(|byte| b"\r\n".contains(byte)) { wrong("CR or LF alone") } else { Ok(line) }
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Parsed<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(length).ok_or(Fault::Cut)?;
    *rest = after;
    Ok(taken)
}

fn text(line: &[u8]) -> Parsed<String> {
    if line.iter().any(|&byte| byte < b' ' && byte != b'\t') {
        return wrong("a control character");
    }
    Ok(String::from_utf8_lossy(line).into_owned())
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Fields up to the empty line.
fn fields(rest: &mut &[u8]) -> Parsed<Vec<(String, String)>> {
    let mut fields = Vec::new();
    loop {
        let line = text(line(rest)?)?;
        if line.is_empty() {
            return Ok(fields);
        }
        let Some((name, value)) = line.split_once(':') else { return wrong(format!("no field: {line:?}")) };
        if name.is_empty() || !name.bytes().all(is_token) {
            return wrong(format!("no name: {name:?}"));
        }
        fields.push((name.to_ascii_lowercase(), value.trim_matches([' ', '\t']).to_owned()));
    }
}

/// Where a message ends, if it says so in one way.
fn length(message: &Message) -> Parsed<Length> {
    let lengths: Vec<_> = message.values("content-length").collect();
    let codings: Vec<_> = message.values("transfer-encoding").collect();
    match (lengths.as_slice(), codings.as_slice()) {
        ([], []) => Ok(Length::Close),
        ([length], []) if !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit()) => {
            length.parse().map(Length::Bytes).map_err(|_| Fault::Wrong(format!("a length of {length}")))
        }
        ([], ["chunked"]) => Ok(Length::Chunked),
        _ => wrong(format!("Content-Length {lengths:?} and Transfer-Encoding {codings:?}")),
    }
}
