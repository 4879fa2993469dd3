//! W3C's extended log format, as IIS and `CloudFront` write it: a line `#Fields:` names the columns, and date and time are two of
//! them.

use serde_json::{Map, Value};

use super::json::JsonFields;
use super::{Entry, Options, Skip};

/// The columns of a log, once its line `#Fields:` was read.
#[derive(Debug, Clone, Default)]
pub(super) struct Columns {
    names: Vec<String>,
    /// The date of the last line `#Date:`, for a log whose lines have a time alone.
    date: Option<String>,
    /// Whether its durations are seconds, as `CloudFront`'s are, and not milliseconds.
    in_seconds: bool,
}

impl Columns {
    /// Takes a comment; `true` where it names the columns.
    pub(super) fn take(&mut self, line: &str) -> bool {
        if let Some(date) = line.strip_prefix("#Date:") {
            self.date = date.split_whitespace().next().map(str::to_owned);
        }
        let Some(names) = line.strip_prefix("#Fields:") else { return false };
        self.names = names.split_whitespace().map(str::to_owned).collect();
        self.in_seconds = self.names.iter().any(|name| name == "x-edge-location");
        true
    }

    /// Reads a line of values.
    pub(super) fn read(&self, line: &str, options: &Options) -> Result<Entry, Skip> {
        if self.names.is_empty() {
            return Err(Skip::Malformed);
        }
        let values: Vec<&str> =
            if line.contains('\t') { line.split('\t').collect() } else { line.split_whitespace().collect() };
        if values.len() != self.names.len() {
            return Err(if values.len() < self.names.len() { Skip::Incomplete } else { Skip::Malformed });
        }
        let column = |name: &str| {
            let place = self.names.iter().position(|known| known == name)?;
            values.get(place).copied().filter(|value| *value != "-" && !value.is_empty())
        };
        let mut row = Map::new();
        let mut put = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                row.insert(name.to_owned(), Value::String(value));
            }
        };
        let time = match (column("date").or(self.date.as_deref()), column("time")) {
            (Some(date), Some(time)) => Some(format!("{date}T{time}Z")),
            _ => None,
        };
        put("time", time);
        put("method", column("cs-method").map(str::to_owned));
        let url = column("cs-uri-stem").or_else(|| column("cs-uri")).map(|stem| match column("cs-uri-query") {
            Some(query) if !stem.contains('?') => format!("{stem}?{query}"),
            _ => stem.to_owned(),
        });
        // `CloudFront` escapes the percent sign of an escape, too.
        put("url", url.map(|url| if self.in_seconds { url.replace("%25", "%") } else { url }));
        put(
            "host",
            column("x-host-header").or_else(|| column("cs-host")).or_else(|| column("cs(Host)")).map(str::to_owned),
        );
        put("status", column("sc-status").map(str::to_owned));
        put("bytes", column("sc-bytes").map(str::to_owned));
        put("client", column("c-ip").map(str::to_owned));
        let unit = if self.in_seconds { "s" } else { "ms" };
        put("duration", column("time-taken").map(|taken| format!("{taken}{unit}")));
        let mut headers = Map::new();
        for name in ["User-Agent", "Referer", "Cookie"] {
            if let Some(value) = column(&format!("cs({name})")) {
                headers.insert(name.to_owned(), Value::String(self.unescaped(value)));
            }
        }
        let mut entry = JsonFields::w3c().read(&row, options)?;
        entry.headers.extend(headers.into_iter().filter_map(|(name, value)| Some((name, value.as_str()?.to_owned()))));
        Ok(entry)
    }

    /// A value of a header field: IIS writes + for a blank, `CloudFront` escapes as URLs do.
    fn unescaped(&self, value: &str) -> String {
        if !self.in_seconds {
            return value.replace('+', " ");
        }
        let mut bytes = Vec::with_capacity(value.len());
        let mut rest = value.as_bytes();
        while let [first, behind @ ..] = rest {
            let digit = |byte: &u8| char::from(*byte).to_digit(16);
            match (first, behind) {
                (b'%', [high, low, after @ ..]) if digit(high).is_some() && digit(low).is_some() => {
                    bytes.push((digit(high).unwrap_or(0) * 16 + digit(low).unwrap_or(0)) as u8);
                    rest = after;
                }
                _ => {
                    bytes.push(*first);
                    rest = behind;
                }
            }
        }
        let once = String::from_utf8(bytes).unwrap_or_else(|_| value.to_owned());
        once.replace("%20", " ")
    }
}

#[cfg(test)]
mod tests {
    use crate::format::{Format, Options, Parser};

    fn shown(log: &str) -> String {
        assert_eq!(Format::recognise(log.as_bytes()), Some(Format::W3c));
        let mut parser = Parser::new(Format::W3c, Options::default()).unwrap();
        let entries = log.lines().filter_map(|line| match parser.line(line.as_bytes()) {
            Ok(None) => None,
            Ok(Some(entry)) => Some(format!(
                "{} {} {} {} {:?} {:?}",
                entry.at.unwrap().ns / 1_000_000,
                entry.session.unwrap_or_default(),
                entry.method,
                entry.url,
                entry.duration_ns,
                entry.headers
            )),
            Err(skip) => Some(format!("{skip:?}")),
        });
        entries.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn iis_and_cloudfront_are_read() {
        let iis = "#Software: Microsoft Internet Information Services 10.0\n#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) sc-status sc-substatus sc-win32-status time-taken\n2026-01-01 10:00:01 10.0.0.1 GET /a b=1 80 - 203.0.113.7 Mozilla/5.0+(X11) - 200 0 0 1000\n2026-01-01 10:00:02 10.0.0.1\n";
        assert_eq!(
            shown(iis),
            "1767261600000 203.0.113.7 GET /a?b=1 Some(1000000000) [(\"User-Agent\", \"Mozilla/5.0 (X11)\")]\nIncomplete"
        );
        assert_eq!(shown(&format!("\u{feff}{iis}")), shown(iis));
        let timed = "#Date: 2026-01-01 09:00:00\n#Fields: time cs-method cs-uri\n10:00:02 GET /a?b\n";
        assert_eq!(shown(timed), "1767261602000  GET /a?b None []");
        let front = "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query x-host-header time-taken\n2026-01-01\t10:00:01\tFRA2\t2390\t2001:db8::7\tPOST\td1.cloudfront.net\t/v%2520w\t200\t-\tMozilla/5.0%20(X11)\t-\tshop.test\t0.500\n";
        assert_eq!(
            shown(front),
            "1767261600500 2001:db8::7 POST /v%20w Some(500000000) [(\"User-Agent\", \"Mozilla/5.0 (X11)\")]"
        );
    }
}
