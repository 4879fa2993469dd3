//! The output of `--once`: every request, answer and check of scenarios, and the bytes of a flood's call; without
//! secrets.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Write as _;

use brunt_engine::trace::{ExchangePart, Trace, Traced};
use brunt_plan::bodies::shown_body;
use brunt_plan::plan::Plan;
use brunt_plan::secret::{REDACTED, is_secret_header, shown_url};
use brunt_plan::units::Duration;
use brunt_protocol::Direction;
use brunt_record::outcome::OkStatus;
use brunt_record::redaction::Secrets;

use crate::console;

/// The longest shown body, in characters.
const MOST_BODY: usize = 2000;

/// The longest shown head, in characters.
const MOST_HEAD: usize = 8000;

/// The most lines for bytes that are not text.
const MOST_LINES: usize = 32;

/// Prints a user's actions.
pub struct Printer {
    /// Whether secrets are printed as they are.
    shows_secrets: bool,
    /// Whether standard output is for people; otherwise it is for a program, and people read standard error.
    is_for_people: bool,
    /// Secret values of `--env` and of options, which are hidden wherever they stand.
    secrets: Secrets,
    /// Which statuses are a success.
    ok_status: OkStatus,
}

impl Printer {
    /// A printer for a run of `plan`.
    pub fn new(plan: &Plan, shows_secrets: bool, is_for_people: bool) -> Self {
        let secrets = if shows_secrets { Secrets::default() } else { plan.secrets() };
        Self { shows_secrets, is_for_people, secrets, ok_status: plan.ok_status.clone() }
    }

    /// An event in words, without secrets.
    pub fn text(&self, traced: &Traced<'_>) -> String {
        let mut text = String::new();
        match traced {
            Traced::Begun { scenario } => {
                let _ = writeln!(text, "\n{scenario}");
            }
            Traced::Answered { name, request, status, head, body, service_ns } => {
                let _ = writeln!(text, "\n→ {name}");
                self.message(&mut text, request);
                let _ = writeln!(text, "← {status} in {}", Duration(*service_ns));
                self.head(&mut text, head);
                self.body(&mut text, body);
            }
            Traced::Failed { name, request, failure, reason } => {
                let _ = writeln!(text, "\n→ {name}");
                self.message(&mut text, request);
                let _ = writeln!(text, "✗ {}: {reason}", failure.name());
            }
            Traced::Moved { direction, part, bytes, count, meaning, told, after_ns } => {
                let part = match (part, direction) {
                    (ExchangePart::Handshake, _) => "handshake",
                    (ExchangePart::Call, Direction::Sent) => "call",
                    (ExchangePart::Call, Direction::Received) => "answer",
                    (ExchangePart::Aside, _) => "aside",
                    (ExchangePart::Goodbye, _) => "goodbye",
                };
                let arrow = if *direction == Direction::Sent { "→" } else { "←" };
                let _ = write!(text, "\n{arrow} {part}, {count} bytes");
                if let Some(after_ns) = after_ns {
                    let _ = write!(text, ", {} later", Duration(*after_ns));
                }
                text.push('\n');
                if let Some(told) = told {
                    for part in *told {
                        self.head(&mut text, part.head.as_bytes());
                        self.body(&mut text, &part.body);
                    }
                    return self.finished(&text);
                }
                if let Some(meaning) = meaning {
                    self.body(&mut text, meaning.as_bytes());
                    text.push('\n');
                }
                self.message(&mut text, &self.secrets.hide_bytes(bytes));
                if *count > bytes.len() as u64 {
                    let _ = writeln!(text, "  … {} bytes more", count - bytes.len() as u64);
                }
            }
            Traced::CallAnswered { status, status_name, service_ns } => {
                let mark = if self.ok_status.holds(*status) { "✓" } else { "✗" };
                let status = match (status, status_name) {
                    (0, None) => String::new(),
                    (status, None) => format!(" with {status}"),
                    (status, Some(name)) => format!(" with {status} ({name})"),
                };
                let _ = writeln!(text, "\n{mark} answered{status} in {}", Duration(*service_ns));
            }
            Traced::CallFailed { failure, reason, service_ns } => {
                let after = service_ns.map_or_else(String::new, |ns| format!(" after {}", Duration(ns)));
                let _ = writeln!(text, "\n✗ {}{after}: {reason}", failure.name());
            }
            Traced::Checked { name, held } => {
                let _ = writeln!(text, "{} {name}", if *held { "✓" } else { "✗" });
            }
            Traced::Logged { level, text: said, .. } => {
                let _ = writeln!(text, "{}: {said}", level.name());
            }
            Traced::Error { traceback } => {
                let _ = writeln!(text, "✗ {}", traceback.replace('\n', "\n  "));
            }
        }
        self.finished(&text)
    }

    /// A text without secrets and without terminal control characters.
    fn finished(&self, text: &str) -> String {
        let text = self.secrets.hide(text);
        // What a server sends must not move the terminal's cursor.
        let shown = |c: char| match c {
            '\t' => ' ',
            c if c.is_control() && c != '\n' => char::REPLACEMENT_CHARACTER,
            c => c,
        };
        text.replace("\r\n", "\n").chars().map(shown).collect()
    }

    /// A head, and a body after an empty line. Bytes that are not text are all body.
    fn message(&self, text: &mut String, bytes: &[u8]) {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
        let (head, body) = bytes.split_at(end);
        if !is_text(head) {
            return hexadecimal(text, bytes);
        }
        self.head(text, head);
        self.body(text, body);
    }

    fn head(&self, text: &mut String, head: &[u8]) {
        let mut shown = String::new();
        for (number, line) in String::from_utf8_lossy(head).lines().enumerate().filter(|(_, line)| !line.is_empty()) {
            match line.split_once(':') {
                Some((name, _)) if self.is_secret(name) => {
                    let _ = writeln!(shown, "{name}: {REDACTED}");
                }
                Some((name, value)) if !self.shows_secrets && is_url_header(name) => {
                    let _ = writeln!(shown, "{name}: {}", shown_url(value.trim()));
                }
                // A pseudo-header field of HTTP/2.
                Some(("", field)) if !self.shows_secrets && field.starts_with("path: ") => {
                    let _ = writeln!(shown, ":path: {}", shown_url(field.trim_start_matches("path: ")));
                }
                _ if number == 0 && !self.shows_secrets => {
                    let words: Vec<_> = line.split(' ').map(shown_url).collect();
                    let _ = writeln!(shown, "{}", words.join(" "));
                }
                _ => {
                    let _ = writeln!(shown, "{line}");
                }
            }
        }
        let (most, whole) = (shown.chars().take(MOST_HEAD), shown.chars().count());
        for line in most.collect::<String>().lines() {
            let _ = writeln!(text, "  {line}");
        }
        if whole > MOST_HEAD {
            let _ = writeln!(text, "  …");
        }
    }

    fn is_secret(&self, name: &str) -> bool {
        !self.shows_secrets && (is_secret_header(name) || name.eq_ignore_ascii_case("set-cookie"))
    }

    fn body(&self, text: &mut String, body: &[u8]) {
        let body = if self.shows_secrets { Cow::Borrowed(body) } else { shown_body(body) };
        if body.is_empty() {
            return;
        }
        if !is_text(&body) {
            text.push('\n');
            return hexadecimal(text, &body);
        }
        let whole = String::from_utf8_lossy(&body);
        let shown: String = whole.chars().take(MOST_BODY).collect();
        let more = if shown.len() < whole.len() { "…" } else { "" };
        let _ = writeln!(text, "\n  {}{more}", shown.trim_end().replace('\n', "\n  "));
    }
}

/// Whether a header of this name holds a URL.
fn is_url_header(name: &str) -> bool {
    ["location", "content-location", "referer"].iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Whether bytes are readable: UTF-8 without control characters other than those of texts.
fn is_text(bytes: &[u8]) -> bool {
    let is_shown = |c: char| !c.is_control() || matches!(c, '\t' | '\r' | '\n' | '\x1b');
    std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(is_shown))
}

/// A hexadecimal dump, sixteen bytes a line, with ASCII beside it.
fn hexadecimal(text: &mut String, bytes: &[u8]) {
    for (line, sixteen) in bytes.chunks(16).take(MOST_LINES).enumerate() {
        let numbers: Vec<_> = sixteen.iter().map(|byte| format!("{byte:02x}")).collect();
        let is_shown = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
        let shown: String = sixteen.iter().map(|byte| if is_shown(byte) { char::from(*byte) } else { '.' }).collect();
        let _ = writeln!(text, "  {:08x}  {:<47}  |{shown}|", line * 16, numbers.join(" "));
    }
    if bytes.len() > MOST_LINES * 16 {
        let _ = writeln!(text, "  … {} bytes in all", bytes.len());
    }
}

impl Trace for Printer {
    fn see(&self, traced: &Traced<'_>) {
        // A reader may stop at any time: that is no failure of the run.
        let text = self.text(traced);
        if self.is_for_people {
            drop(console::print(text.as_bytes()));
        } else {
            drop(std::io::stderr().lock().write_all(text.as_bytes()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printer_of(shows_secrets: bool, secrets: &[&str]) -> Printer {
        let secrets = Secrets::new(secrets.iter().map(|&secret| secret.to_owned()));
        Printer { shows_secrets, is_for_people: true, secrets, ok_status: OkStatus::default() }
    }

    #[test]
    fn what_a_flood_sends_is_shown_by_parts() {
        let printer = printer_of(false, &["t0p"]);
        let moved = |direction, bytes, meaning, after_ns| {
            printer.text(&Traced::Moved {
                direction,
                part: ExchangePart::Call,
                bytes,
                count: 9,
                meaning,
                told: None,
                after_ns,
            })
        };
        assert_eq!(
            moved(Direction::Sent, b"\x81t0p", Some("text frame: t0p"), None),
            "\n→ call, 9 bytes\n\n  text frame: [redacted]\n\n  00000000  81 5b 72 65 64 61 63 74 65 64 5d                 |\
             .[redacted]|\n  … 5 bytes more\n"
        );
        assert_eq!(
            moved(Direction::Received, b"GET /?key=x HTTP/1.1\r\n\r\n", None, Some(2_000_000)),
            "\n← answer, 9 bytes, 2.00ms later\n  GET /?key=[redacted] HTTP/1.1\n"
        );
        let answered =
            |status, status_name| printer.text(&Traced::CallAnswered { status, status_name, service_ns: 1_000_000 });
        assert_eq!(answered(0, None), "\n✓ answered in 1.00ms\n");
        assert_eq!(answered(404, None), "\n✗ answered with 404 in 1.00ms\n");
        assert_eq!(answered(1, Some("Gone")), "\n✓ answered with 1 (Gone) in 1.00ms\n");
    }

    #[test]
    fn what_is_no_text_is_shown_by_its_numbers() {
        let printer = printer_of(false, &[]);
        let mut text = String::new();
        printer.body(&mut text, b"\x80\x01\0\x02told, and more\n");
        let expected = "\n  00000000  80 01 00 02 74 6f 6c 64 2c 20 61 6e 64 20 6d 6f  |....told, and mo|\n  00000010  \
                        72 65 0a                                         |re.|\n";
        assert_eq!(text, expected);
        text.clear();
        printer.body(&mut text, &[0; 600]);
        assert!(text.lines().count() == 34 && text.ends_with("  … 600 bytes in all\n"), "{text}");
    }

    #[test]
    fn secrets_are_left_out_wherever_they_stand() {
        let request = b"POST /login?key=t0p HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer x\r\n\r\npin=t0p";
        let head = b"HTTP/1.1 200 OK\r\nSet-Cookie: id=7\r\n\r\n";
        let answered = Traced::Answered {
            name: "login",
            request,
            status: 200,
            head,
            body: b"\x1b[2Jhi\nyou",
            service_ns: 1_500_000,
        };
        let printer = printer_of(false, &["t0p"]);
        let expected = "\n→ login\n  POST /login?key=[redacted] HTTP/1.1\n  Host: a\n  Authorization: [redacted]\n\n  \
                        pin=[redacted]\n← 200 in 1.50ms\n  HTTP/1.1 200 OK\n  Set-Cookie: [redacted]\n\n  \u{fffd}[2Jhi\n  you\n";
        assert_eq!(printer.text(&answered), expected);
        let open = printer_of(true, &[]);
        assert!(open.text(&answered).contains("Bearer x") && open.text(&answered).contains("id=7"));
    }
}
