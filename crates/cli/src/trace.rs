//! What `brunt run --once` prints: every request, answer and check, with what is secret left out.

use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::Result;
use brunt_engine::trace::{Trace, Traced};
use brunt_model::plan::Plan;
use brunt_model::secret::{REDACTED, is_secret_header};

use crate::console;

/// The most that is printed of a body, in characters.
const MOST_BODY: usize = 2000;

/// The most lines of bytes that are no text.
const MOST_LINES: usize = 32;

/// Prints what a user does.
pub struct Printer {
    /// Whether secrets are printed as they are.
    shows_secrets: bool,
    /// Whether standard output is for people; else it is for a program, and people read standard error.
    is_for_people: bool,
    /// Values of `--env` that are not to be seen, wherever they stand.
    secrets: Vec<String>,
}

impl Printer {
    /// A printer for a run of `plan`.
    pub fn of(plan: &Plan, shows_secrets: bool, is_for_people: bool) -> Result<Self> {
        let mut secrets = Vec::new();
        for value in plan.scenarios.iter().flat_map(|scenarios| scenarios.env.values()) {
            let revealed = value.reveal(|name| std::env::var(name).ok())?;
            if !shows_secrets && value.shown() != revealed && !revealed.is_empty() {
                secrets.push(revealed);
            }
        }
        // Where one is within another, the longer goes first.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Ok(Self { shows_secrets, is_for_people, secrets })
    }

    fn text(&self, traced: &Traced<'_>) -> String {
        let mut text = String::new();
        match traced {
            Traced::Begun { scenario } => {
                let _ = writeln!(text, "\n{scenario}");
            }
            Traced::Answered { name, request, status, head, body, service_ns } => {
                let _ = writeln!(text, "\n→ {name}");
                self.message(&mut text, request);
                let _ = writeln!(text, "← {status} in {:.2} ms", *service_ns as f64 / 1e6);
                self.head(&mut text, head);
                Self::body(&mut text, body);
            }
            Traced::Failed { name, request, failure, reason } => {
                let _ = writeln!(text, "\n→ {name}");
                self.message(&mut text, request);
                let _ = writeln!(text, "✗ {}: {reason}", failure.name());
            }
            Traced::Checked { name, held } => {
                let _ = writeln!(text, "{} {name}", if *held { "✓" } else { "✗" });
            }
            Traced::Error { traceback } => {
                let _ = writeln!(text, "✗ {}", traceback.replace('\n', "\n  "));
            }
        }
        for secret in &self.secrets {
            text = text.replace(secret, REDACTED);
        }
        // What a server sends must not move the terminal's cursor.
        let shown = |c: char| match c {
            '\t' => ' ',
            c if c.is_control() && c != '\n' => char::REPLACEMENT_CHARACTER,
            c => c,
        };
        text.replace("\r\n", "\n").chars().map(shown).collect()
    }

    /// A head, and a body after an empty line.
    fn message(&self, text: &mut String, bytes: &[u8]) {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
        let (head, body) = bytes.split_at(end);
        self.head(text, head);
        Self::body(text, body);
    }

    fn head(&self, text: &mut String, head: &[u8]) {
        for line in String::from_utf8_lossy(head).lines().filter(|line| !line.is_empty()) {
            let shown = match line.split_once(':') {
                Some((name, _)) if self.is_secret(name) => format!("{name}: {REDACTED}"),
                _ => line.to_owned(),
            };
            let _ = writeln!(text, "  {shown}");
        }
    }

    fn is_secret(&self, name: &str) -> bool {
        !self.shows_secrets && (is_secret_header(name) || name.eq_ignore_ascii_case("set-cookie"))
    }

    fn body(text: &mut String, body: &[u8]) {
        if body.is_empty() {
            return;
        }
        if !is_text(body) {
            text.push('\n');
            return hexadecimal(text, body);
        }
        let whole = String::from_utf8_lossy(body);
        let shown: String = whole.chars().take(MOST_BODY).collect();
        let more = if shown.len() < whole.len() { "…" } else { "" };
        let _ = writeln!(text, "\n  {}{more}", shown.trim_end().replace('\n', "\n  "));
    }
}

/// Whether bytes are for people: UTF-8 without control characters but for those of texts.
fn is_text(bytes: &[u8]) -> bool {
    let is_shown = |c: char| !c.is_control() || matches!(c, '\t' | '\r' | '\n' | '\x1b');
    std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(is_shown))
}

/// Bytes by their numbers, sixteen in a line, with what they are in ASCII.
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
        // Who reads may stop at any time: that is no failure of the run.
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

    #[test]
    fn what_is_no_text_is_shown_by_its_numbers() {
        let mut text = String::new();
        Printer::body(&mut text, b"\x80\x01\0\x02told, and more\n");
        let expected = "\n  00000000  80 01 00 02 74 6f 6c 64 2c 20 61 6e 64 20 6d 6f  |....told, and mo|\n  00000010  \
                        72 65 0a                                         |re.|\n";
        assert_eq!(text, expected);
        text.clear();
        Printer::body(&mut text, &[0; 600]);
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
        let printer = Printer { shows_secrets: false, is_for_people: true, secrets: vec!["t0p".to_owned()] };
        let expected = "\n→ login\n  POST /login?key=[redacted] HTTP/1.1\n  Host: a\n  Authorization: [redacted]\n\n  \
                        pin=[redacted]\n← 200 in 1.50 ms\n  HTTP/1.1 200 OK\n  Set-Cookie: [redacted]\n\n  \u{fffd}[2Jhi\n  you\n";
        assert_eq!(printer.text(&answered), expected);
        let open = Printer { shows_secrets: true, is_for_people: true, secrets: Vec::new() };
        assert!(open.text(&answered).contains("Bearer x") && open.text(&answered).contains("id=7"));
    }
}
