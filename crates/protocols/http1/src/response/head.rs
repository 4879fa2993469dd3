//! The head of an answer: status line and header fields, and their meaning for the body.

use std::borrow::Cow;
use std::cell::RefCell;
use std::mem::MaybeUninit;

use brunt_protocol::Malformed;

/// The most bytes a status line with its header section may have.
pub(super) const MOST_HEAD_BYTES: usize = 64 * 1024;
/// A head of up to this size is parsed anew with each piece that arrives, and remembered once it is whole.
const SHORT_HEAD_BYTES: usize = 512;
/// The most header fields an answer may have.
pub(super) const MOST_HEADERS: usize = 128;

/// The most interim answers (1xx) before the final one.
const MOST_INTERIM: u8 = 16;

/// Puts heads together from bytes in pieces of any size.
#[derive(Debug, Default)]
pub(super) struct HeadReader {
    /// The beginning of an incomplete head.
    partial: Vec<u8>,
    /// Interim answers (1xx) before the final one.
    interim: u8,
    /// The heads with fields in a form that is taken and not right, since they were last reported.
    untidy: u64,
}

/// A head that is complete.
pub(super) struct CompleteHead<'a> {
    /// How many of the bytes just given are its own.
    pub(super) taken: usize,
    /// Its meaning.
    pub(super) head: Head,
    /// Its text, with each field in one line.
    pub(super) text: Cow<'a, [u8]>,
}

impl HeadReader {
    /// Whether no byte of the next answer has come yet.
    pub(super) fn is_at_start(&self) -> bool {
        self.partial.is_empty() && self.interim == 0
    }

    /// The number of untidy heads since the last time.
    pub(super) fn take_untidy(&mut self) -> u64 {
        std::mem::take(&mut self.untidy)
    }

    /// The head of an interim answer has come, and another head follows.
    ///
    /// # Errors
    /// When there are too many of them.
    pub(super) fn note_interim(&mut self) -> Result<(), Malformed> {
        self.interim += 1;
        if self.interim > MOST_INTERIM {
            return Err(Malformed::because("more than 16 interim answers"));
        }
        Ok(())
    }

    /// The head of another answer follows.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.interim = 0;
    }

    /// Takes bytes: all of them, unless a head is complete.
    ///
    /// # Errors
    /// When they break the grammar or a limit.
    #[inline]
    pub(super) fn read<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<CompleteHead<'a>>, Malformed> {
        if !self.partial.is_empty() {
            return self.read_on(bytes);
        }
        let Some(head) = read_head(bytes)? else {
            self.partial.extend_from_slice(bytes);
            return self.is_within_limit().map(|()| None);
        };
        let text = bytes.get(..head.bytes).unwrap_or(bytes);
        if head.is_untidy {
            return self.tidy(head, head.bytes, text).map(Some);
        }
        Ok(Some(CompleteHead { taken: head.bytes, head, text: Cow::Borrowed(text) }))
    }

    /// Takes further bytes of a head.
    fn read_on<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<CompleteHead<'a>>, Malformed> {
        let before = self.partial.len();
        // A long head is parsed only once its end has come, so that one in many small pieces costs no more than a whole
        // one; a short one at once, so that garbage is recognised.
        let from = before.saturating_sub(3);
        self.partial.extend_from_slice(bytes.get(..bytes.len().min(MOST_HEAD_BYTES)).unwrap_or(bytes));
        let ended = has_head_end(self.partial.get(from..).unwrap_or(&[]));
        let parsed = ended || !(SHORT_HEAD_BYTES..MOST_HEAD_BYTES).contains(&self.partial.len());
        let Some(head) = (if parsed { parse_head(&self.partial)? } else { None }) else {
            return self.is_within_limit().map(|()| None);
        };
        let taken = head.bytes.saturating_sub(before);
        let mut text = std::mem::take(&mut self.partial);
        text.truncate(head.bytes);
        if head.is_untidy {
            return self.tidy(head, taken, &text).map(Some);
        }
        Ok(Some(CompleteHead { taken, head, text: Cow::Owned(text) }))
    }

    #[cold]
    fn tidy<'a>(&mut self, head: Head, taken: usize, text: &[u8]) -> Result<CompleteHead<'a>, Malformed> {
        self.untidy += 1;
        Ok(CompleteHead { taken, head, text: Cow::Owned(tidied(text)?) })
    }

    fn is_within_limit(&self) -> Result<(), Malformed> {
        if self.partial.len() >= MOST_HEAD_BYTES {
            return Err(Malformed::because("a header section of more than 64 KiB"));
        }
        Ok(())
    }
}

/// The meaning of a head for the bytes behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) bytes: usize,
    pub(super) status: u16,
    pub(super) reusable: bool,
    pub(super) length: Option<u64>,
    pub(super) coding: Coding,
    /// Whether its fields have a form that is taken and not right: [`tidied`] has the right one.
    pub(super) is_untidy: bool,
}

/// The transfer coding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    None,
    /// Chunked is the last coding.
    Chunked,
    /// There is a coding, and its last is not chunked.
    Other,
}

/// Whether `bytes` hold the empty line that ends a head.
fn has_head_end(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|pair| pair == b"\n\n") || bytes.windows(3).any(|triple| triple == b"\n\r\n")
}

/// The short head read last on this thread.
struct LastHead {
    bytes: Vec<u8>,
    head: Option<Head>,
}

thread_local! {
    // Servers send the same head again and again: to parse each took 2% of the flood's CPU.
    static LAST_HEAD: RefCell<LastHead> = const { RefCell::new(LastHead { bytes: Vec::new(), head: None }) };
}

/// Reads a head, if it is complete. One that equals the last one on this thread is not parsed again: the meaning of a
/// complete head does not depend on the bytes behind it.
pub(super) fn read_head(bytes: &[u8]) -> Result<Option<Head>, Malformed> {
    LAST_HEAD.with_borrow_mut(|last| {
        if let Some(head) = last.head
            && bytes.starts_with(&last.bytes)
        {
            return Ok(Some(head));
        }
        let parsed = parse_head(bytes)?;
        if let Some(head) = parsed
            && head.bytes <= SHORT_HEAD_BYTES
        {
            last.bytes.clear();
            last.bytes.extend_from_slice(bytes.get(..head.bytes).unwrap_or(&[]));
            last.head = Some(head);
        }
        Ok(parsed)
    })
}

/// Reads a head, if it is complete.
pub(super) fn parse_head(bytes: &[u8]) -> Result<Option<Head>, Malformed> {
    match parse_strictly(bytes) {
        Ok(head) => Ok(head),
        Err(Refused::Meaning(malformed)) => Err(malformed),
        Err(Refused::Grammar(httparse::Error::HeaderName)) => parse_untidy(bytes),
        Err(Refused::Grammar(error)) => refused(error, bytes),
    }
}

/// Why a head is not taken.
enum Refused {
    /// It breaks the grammar.
    Grammar(httparse::Error),
    /// Its parts do not go together, or the bytes are of another protocol.
    Meaning(Malformed),
}

fn parse_strictly(bytes: &[u8]) -> Result<Option<Head>, Refused> {
    let mut headers = [const { MaybeUninit::uninit() }; MOST_HEADERS];
    let mut response = httparse::Response::new(&mut []);
    let parsed =
        httparse::ParserConfig::default().parse_response_with_uninit_headers(&mut response, bytes, &mut headers);
    let taken = match parsed {
        Ok(httparse::Status::Complete(taken)) => taken,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => match other_protocol(bytes) {
            OtherProtocol::MayBe => return Ok(None),
            OtherProtocol::Is(way_out) => return Err(Refused::Meaning(Malformed::because(way_out))),
            OtherProtocol::Unknown => return Err(Refused::Grammar(error)),
        },
    };
    meaning(&response, taken).map(Some).map_err(Refused::Meaning)
}

fn meaning(response: &httparse::Response<'_, '_>, bytes: usize) -> Result<Head, Malformed> {
    let (Some(status), Some(version)) = (response.code, response.version) else {
        return Err(Malformed::because("bad status line"));
    };
    if !(100..=999).contains(&status) {
        return Err(Malformed::because("a status code under 100"));
    }
    // HTTP/1.1 connections stay open unless told otherwise, HTTP/1.0 ones only when told (RFC 9112 §9.3).
    let mut head = Head { bytes, status, reusable: version == 1, length: None, coding: Coding::None, is_untidy: false };
    for header in response.headers.iter() {
        match header.name.len() {
            10 if header.name.eq_ignore_ascii_case("connection") => connection(header.value, &mut head),
            14 if header.name.eq_ignore_ascii_case("content-length") => {
                head.length = Some(content_length(header.value, head.length)?);
            }
            17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                let last = header.value.rsplit(|&b| b == b',').next().unwrap_or(&[]).trim_ascii();
                head.coding = if last.eq_ignore_ascii_case(b"chunked") { Coding::Chunked } else { Coding::Other };
            }
            _ => {}
        }
    }
    Ok(head)
}

/// Reads a head with folded fields (RFC 9112 §5.2) or blanks before a colon, where that is all that is wrong with it.
#[cold]
fn parse_untidy(bytes: &[u8]) -> Result<Option<Head>, Malformed> {
    let mut headers = [const { MaybeUninit::uninit() }; MOST_HEADERS];
    let mut response = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default()
        .allow_obsolete_multiline_headers_in_responses(true)
        .allow_spaces_after_header_name_in_responses(true)
        .parse_response_with_uninit_headers(&mut response, bytes, &mut headers);
    let taken = match parsed {
        Ok(httparse::Status::Complete(taken)) => taken,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return refused(error, bytes),
    };
    let tidy = tidied(bytes.get(..taken).unwrap_or(bytes))?;
    match parse_strictly(&tidy) {
        Ok(head) => Ok(head.map(|head| Head { bytes: taken, is_untidy: true, ..head })),
        Err(Refused::Meaning(malformed)) => Err(malformed),
        Err(Refused::Grammar(error)) => Err(malformed_head(error, &tidy)),
    }
}

/// A complete head with each field in one line, and without blanks before colons.
///
/// # Errors
/// When a field that says where the body ends has such a blank: others may read another length (RFC 9112 §5.1).
fn tidied(head: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut tidy: Vec<u8> = Vec::with_capacity(head.len());
    for (number, line) in head.split(|byte| *byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let is_fold = number > 1 && line.starts_with(b" ") || line.starts_with(b"\t");
        if is_fold && !line.trim_ascii().is_empty() {
            // The line end before it becomes a space.
            while tidy.last().is_some_and(u8::is_ascii_whitespace) {
                tidy.pop();
            }
            tidy.push(b' ');
            tidy.extend_from_slice(line.trim_ascii());
        } else if let Some(colon) = line.iter().position(|byte| *byte == b':').filter(|_| number > 0) {
            let (name, value) = line.split_at(colon);
            let is_blank_before = name.last().is_some_and(u8::is_ascii_whitespace);
            let name = name.trim_ascii_end();
            let frames =
                [&b"content-length"[..], b"transfer-encoding"].iter().any(|own| name.eq_ignore_ascii_case(own));
            if is_blank_before && frames {
                let name = shown_name(name);
                return Err(Malformed(format!("a blank before the colon of the header field '{name}'").into()));
            }
            tidy.extend_from_slice(name);
            tidy.extend_from_slice(value);
        } else if !line.is_empty() || number == 0 {
            tidy.extend_from_slice(line);
        }
        // The split has an empty end behind the last line end.
        if !tidy.is_empty() && !tidy.ends_with(b"\r\n\r\n") {
            tidy.extend_from_slice(b"\r\n");
        }
    }
    Ok(tidy)
}

/// The longest name of a field that an error shows, in bytes.
const MOST_SHOWN: usize = 60;

/// A field's name as an error shows it.
fn shown_name(name: &[u8]) -> String {
    let name = name.get(..MOST_SHOWN).unwrap_or(name);
    let is_visible = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
    name.iter().map(|byte| if is_visible(byte) { char::from(*byte) } else { '?' }).collect::<String>().trim().to_owned()
}

/// The error on a head that breaks the grammar, once all that it names has come.
#[cold]
fn refused(error: httparse::Error, bytes: &[u8]) -> Result<Option<Head>, Malformed> {
    let is_of_field = matches!(error, httparse::Error::HeaderName | httparse::Error::HeaderValue);
    let is_named = || broken_line(bytes).map_or(bytes.ends_with(b"\n"), |(_, is_named)| is_named);
    if is_of_field && !is_named() { Ok(None) } else { Err(malformed_head(error, bytes)) }
}

#[cold]
fn malformed_head(error: httparse::Error, bytes: &[u8]) -> Malformed {
    let field = |problem: &str| match broken_field(bytes) {
        Some(name) => Malformed(format!("{problem} in the header field '{name}'").into()),
        None => Malformed(format!("{problem} in a header field").into()),
    };
    Malformed::because(match error {
        httparse::Error::HeaderName => return field("bad name"),
        httparse::Error::HeaderValue => return field("bad value"),
        httparse::Error::TooManyHeaders => "more than 128 header fields",
        httparse::Error::Version => "bad status line: not HTTP/1.x",
        httparse::Error::Status => "bad status line: bad status code or reason",
        httparse::Error::NewLine => "bad line end in the header section",
        httparse::Error::Token => "bad status line",
    })
}

/// The first line of a field that cannot be taken, and whether all of its name has come.
fn broken_line(bytes: &[u8]) -> Option<(&[u8], bool)> {
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let is_of_value = |byte: &u8| *byte == b'\t' || *byte >= b' ' && *byte != 0x7f;
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').skip(1);
    lines.find_map(|line| {
        let (line, has_end) = line.strip_suffix(b"\n").map_or((line, false), |line| (line, true));
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = line.split_at(colon.unwrap_or(line.len()));
        let has_colon = colon.is_some() || !has_end;
        let is_right = has_colon && !name.is_empty() && name.iter().all(is_token) && value.iter().all(is_of_value);
        (!line.is_empty() && !is_right).then_some((name, has_end || colon.is_some()))
    })
}

/// The name of the first field that cannot be taken.
fn broken_field(bytes: &[u8]) -> Option<String> {
    broken_line(bytes).map(|(name, _)| shown_name(name)).filter(|name| !name.is_empty())
}

/// First bytes of other protocols, a set for each byte (an empty one holds all), and the advice for them.
const OTHERS: [(&[&[u8]], &str); 3] = [
    // A TLS alert or handshake record of any version (RFC 8446 §5.1).
    (&[&[21, 22], &[3]], "the target speaks TLS: use https:// (or wss://)"),
    // A frame of HTTP/2 that belongs to the whole connection: SETTINGS, with which a server begins, or GOAWAY (RFC 9113
    // §3.4, §4.1).
    (&[&[0], &[], &[], &[4, 7], &[], &[0], &[0], &[0], &[0]], "the target speaks HTTP/2: give --http 2"),
    (&[b"S", b"S", b"H", b"-"], "the target speaks SSH"),
];

/// The other protocol that the first bytes of a connection suggest.
enum OtherProtocol {
    /// It is this one; with the way out.
    Is(&'static str),
    /// More bytes may make it one.
    MayBe,
    /// It is none of the known ones.
    Unknown,
}

fn other_protocol(bytes: &[u8]) -> OtherProtocol {
    let is_like =
        |first: &[&[u8]]| first.iter().zip(bytes).all(|(known, byte)| known.is_empty() || known.contains(byte));
    match OTHERS.iter().find(|(first, _)| is_like(first)) {
        Some((first, _)) if bytes.len() < first.len() => OtherProtocol::MayBe,
        Some((_, way_out)) => OtherProtocol::Is(way_out),
        None => OtherProtocol::Unknown,
    }
}

fn connection(value: &[u8], head: &mut Head) {
    for option in value.split(|&b| b == b',').map(<[u8]>::trim_ascii) {
        if option.eq_ignore_ascii_case(b"close") {
            head.reusable = false;
        } else if option.eq_ignore_ascii_case(b"keep-alive") {
            head.reusable = true;
        }
    }
}

/// A Content-Length, which may be repeated, in one field or several, if it is always the same (RFC 9110 §8.6).
fn content_length(value: &[u8], known: Option<u64>) -> Result<u64, Malformed> {
    let mut length = known;
    for part in value.split(|&b| b == b',').map(<[u8]>::trim_ascii) {
        let digits = !part.is_empty() && part.len() <= 18 && part.iter().all(u8::is_ascii_digit);
        if !digits {
            return Err(Malformed::because("bad Content-Length"));
        }
        let number = part.iter().fold(0, |number: u64, digit| number * 10 + u64::from(digit - b'0'));
        if length.is_some_and(|known| known != number) {
            return Err(Malformed::because("conflicting Content-Length"));
        }
        length = Some(number);
    }
    length.ok_or(Malformed::because("bad Content-Length"))
}
