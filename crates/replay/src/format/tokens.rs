//! Lines of load balancers and stores, which have a fixed order of fields: HAProxy, ELB and ALB, S3, Envoy.

use super::{Options, SessionBy, cookie, header, request_line};
use crate::entry::{Entry, Skip, Took};
use crate::stamp;

/// A field of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Plain(&'a str),
    /// Within quotation marks.
    Quoted(&'a str),
    /// Within square brackets.
    Bracketed(&'a str),
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Self::Plain(text) | Self::Quoted(text) | Self::Bracketed(text) => text,
        }
    }
}

/// A layout of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// HAProxy's `option httplog`.
    Haproxy,
    /// A classic load balancer (ELB), or an application load balancer (ALB), of AWS.
    Elb,
    /// Server access logs of S3.
    S3,
    /// Envoy's default format, and Istio's.
    Envoy,
}

/// The fields of a line, which blanks separate.
fn tokens(line: &str) -> Option<Vec<Token<'_>>> {
    let mut all = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let (token, behind) = if let Some(inner) = rest.strip_prefix('"') {
            let (text, behind) = inner.split_once('"')?;
            (Token::Quoted(text), behind)
        } else if let Some((text, behind)) = rest.strip_prefix('[').and_then(|inner| inner.split_once(']'))
            // An IPv6 address in brackets has its port behind them.
            && (behind.is_empty() || behind.starts_with(' '))
        {
            (Token::Bracketed(text), behind)
        } else {
            let (text, behind) = rest.split_at(rest.find(' ').unwrap_or(rest.len()));
            (Token::Plain(text), behind)
        };
        all.push(token);
        rest = behind.trim_start();
    }
    Some(all)
}

/// The values of a line by their meanings.
#[derive(Default)]
struct Found<'a> {
    time: &'a str,
    stamps_end: bool,
    client: &'a str,
    request: &'a str,
    status: &'a str,
    bytes: &'a str,
    took: Option<Took>,
    agent: Option<&'a str>,
    referer: Option<&'a str>,
    /// The requested host, if a field of its own has it.
    host: Option<&'a str>,
}

/// Reads a line of this layout.
pub(super) fn read(layout: Layout, line: &str, options: &Options) -> Result<Entry, Skip> {
    let all = tokens(line).ok_or(Skip::Malformed)?;
    let found = match layout {
        Layout::Haproxy => haproxy(&all),
        Layout::Elb => elb(&all),
        Layout::S3 => s3(&all),
        Layout::Envoy => envoy(&all),
    };
    entry(&found.ok_or(Skip::Malformed)?, options)
}

fn text<'a>(all: &[Token<'a>], place: usize) -> Option<&'a str> {
    all.get(place).map(|token| token.text())
}

/// Durations, added up; -1 stands for a time that there was not.
fn sum(texts: &[&str], unit_ns: f64) -> Option<Took> {
    texts.iter().map(|text| Took::read(text, unit_ns)).reduce(Took::and)
}

/// `CLIENT:PORT [TIME] FRONTEND BACKEND/SERVER TIMERS STATUS BYTES - - FLAGS CONNECTIONS QUEUES "REQUEST"`, after a prefix of
/// syslog.
fn haproxy<'a>(all: &[Token<'a>]) -> Option<Found<'a>> {
    let time = all
        .iter()
        .position(|token| matches!(token, Token::Bracketed(text) if text.contains('/') && text.contains(':')))?;
    let timers = text(all, time + 3)?;
    if timers.split('/').count() != 5 {
        return None;
    }
    let Token::Quoted(request) = all.last()? else { return None };
    Some(Found {
        time: text(all, time)?,
        client: text(all, time.checked_sub(1)?)?,
        request,
        status: text(all, time + 4)?,
        bytes: text(all, time + 5)?.trim_start_matches('+'),
        took: timers.rsplit('/').next().and_then(|total| sum(&[total], 1e6)),
        ..Found::default()
    })
}

/// `TIME NAME CLIENT:PORT TARGET:PORT A B C STATUS STATUS RECEIVED SENT "REQUEST" "AGENT"`; an ALB has its type before.
fn elb<'a>(all: &[Token<'a>]) -> Option<Found<'a>> {
    let first = text(all, 0)?;
    let is_alb = matches!(first, "http" | "https" | "h2" | "grpcs" | "ws" | "wss");
    let at = usize::from(is_alb);
    let Token::Quoted(request) = all.get(at + 11)? else { return None };
    let times = [text(all, at + 4)?, text(all, at + 5)?, text(all, at + 6)?];
    Some(Found {
        time: text(all, at)?,
        // An ALB stamps the end of a request, a classic balancer its beginning.
        stamps_end: is_alb,
        client: text(all, at + 2)?,
        request,
        status: text(all, at + 7)?,
        bytes: text(all, at + 10)?,
        took: sum(&times, 1e9),
        agent: all.get(at + 12).map(|token| token.text()),
        ..Found::default()
    })
}

/// `OWNER BUCKET [TIME] CLIENT REQUESTER ID OPERATION KEY "REQUEST" STATUS ERROR SENT SIZE TOTAL OWN "REFERER" "AGENT"`.
fn s3<'a>(all: &[Token<'a>]) -> Option<Found<'a>> {
    let (Token::Bracketed(time), Token::Quoted(request)) = (all.get(2)?, all.get(8)?) else { return None };
    Some(Found {
        time,
        client: text(all, 3)?,
        request,
        status: text(all, 9)?,
        bytes: text(all, 11)?,
        took: sum(&[text(all, 13)?], 1e6),
        referer: text(all, 15),
        agent: text(all, 16),
        ..Found::default()
    })
}

/// `[TIME] "REQUEST" STATUS FLAGS … RECEIVED SENT DURATION UPSTREAM "FORWARDED FOR" "AGENT" "ID" "HOST" …`: Istio has further
/// fields behind the flags.
fn envoy<'a>(all: &[Token<'a>]) -> Option<Found<'a>> {
    let pair = |pair: &[Token<'a>]| matches!(pair, [Token::Bracketed(_), Token::Quoted(_)]);
    let time = all.windows(2).position(pair)?;
    let ends = |ends: &[Token<'a>]| {
        let [Token::Plain(received), Token::Plain(sent), Token::Plain(_), Token::Plain(_), quoted @ ..] = ends else {
            return false;
        };
        let are_numbers = [received, sent].iter().all(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        are_numbers && quoted.iter().all(|token| matches!(token, Token::Quoted(_)))
    };
    let sent = time + 3 + all.get(time + 3..)?.windows(8).position(ends)? + 1;
    let forwarded = text(all, sent + 3)?;
    Some(Found {
        time: text(all, time)?,
        client: forwarded.split(',').next().unwrap_or_default().trim(),
        request: text(all, time + 1)?,
        status: text(all, time + 2)?,
        bytes: text(all, sent)?,
        took: sum(&[text(all, sent + 1)?], 1e6),
        agent: text(all, sent + 4),
        host: text(all, sent + 6).filter(|host| *host != "-"),
        ..Found::default()
    })
}

/// A client's address without its port.
fn without_port(client: &str) -> &str {
    let is_one = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    match client.rsplit_once(':') {
        // An IPv6 address without brackets has colons of its own.
        Some((host, port)) if is_one(port) && (!host.contains(':') || host.starts_with('[')) => {
            host.trim_start_matches('[').trim_end_matches(']')
        }
        _ => client,
    }
}

fn entry(found: &Found<'_>, options: &Options) -> Result<Entry, Skip> {
    let (method, url) = request_line(found.request).ok_or(Skip::NoRequest)?;
    let host = found.host.map(str::to_owned);
    let mut entry = Entry { method: method.to_owned(), url: url.to_owned(), host, ..Entry::default() };
    // Balancers write the whole URL, with their own name or the client's Host.
    if let Some((_, rest)) = url.split_once("://") {
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (host, path) = rest.split_at(end);
        entry.host = Some(host.to_owned());
        entry.url = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    }
    let mut at = stamp::read(found.time, options.zone_s).ok_or(Skip::BadTime)?;
    entry.took(found.took.unwrap_or(Took::Absent));
    if let (true, Some(took)) = (found.stamps_end, entry.duration_ns) {
        at.ns = at.ns.saturating_sub_unsigned(took);
    }
    entry.at = Some(at);
    entry.status = found.status.parse().ok();
    entry.bytes = found.bytes.parse().ok();
    let fields = [("User-Agent", found.agent), ("Referer", found.referer)];
    let given = fields.into_iter().filter_map(|(name, value)| Some((name, value.filter(|value| *value != "-")?)));
    entry.headers = given.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    entry.session = match &options.session {
        SessionBy::Client => Some(without_port(found.client).to_owned()).filter(|client| client != "-"),
        SessionBy::Cookie(name) => {
            header(&entry.headers, "cookie").and_then(|field| cookie(field, name)).map(str::to_owned)
        }
        SessionBy::Field(name) => header(&entry.headers, name).map(str::to_owned),
        SessionBy::None => None,
    };
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HAPROXY: &str = r#"Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 [06/Feb/2026:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /index.html?a=1 HTTP/1.1""#;
    const ELB: &str = r#"2026-05-13T23:39:43.945958Z my-balancer 192.168.131.39:2817 10.0.0.1:80 0.000073 0.001048 0.000057 200 200 0 29 "GET http://www.example.com:80/a?b HTTP/1.1" "curl/7.38.0" - -"#;
    const ALB: &str = r#"h2 2026-07-02T22:23:00.186641Z app/my-balancer/50dc6c495c0c9188 [2001:db8::7]:2817 10.0.0.1:80 0.5 1.5 -1 404 404 34 366 "POST https://www.example.com:443/ HTTP/2.0" "curl/7.46.0" ECDHE TLSv1.2 arn:x "Root=1" "www.example.com" "-" 0 2026-07-02T22:22:48.364000Z "forward" "-" "-""#;
    const S3: &str = r#"79a59df9 examplebucket [06/Feb/2026:00:00:38 +0000] 192.0.2.3 79a59df9 3E57427F3 REST.GET.OBJECT s3-dg.pdf "GET /examplebucket/s3-dg.pdf HTTP/1.1" 200 - 4406583 4406583 70 10 "-" "S3Console/0.4" -"#;

    const ENVOY: &str = r#"[2026-04-15T20:17:00.310Z] "POST /api/v1/a?b=c HTTP/2" 204 - 154 12 226 100 "10.0.35.28, 10.1.1.1" "nsq2http" "cc21d9b0" "locations" "tcp://10.0.2.1:80""#;
    const ISTIO: &str = r#"2026-04-15T20:17:00.400Z stdout F [2026-04-15T20:17:00.310Z] "GET /b HTTP/1.1" 503 UF,URX upstream_reset_before_response_started{connection_failure} - "connection refused" 0 91 3 - "-" "curl/8" "5f2c" "httpbin:8000" "10.44.1.23:80" outbound|8000||httpbin 10.44.1.22:53032 10.0.1.1:8000 10.44.1.22:4 - default"#;

    fn shown(layout: Layout, line: &str) -> String {
        match read(layout, line, &Options::default()) {
            Ok(entry) => format!(
                "{} {} {} {:?} {:?} {:?} {:?}",
                entry.session.as_deref().unwrap_or("-"),
                entry.method,
                entry.url,
                entry.host,
                entry.status,
                entry.bytes,
                entry.duration_ns
            ),
            Err(skip) => format!("{skip:?}"),
        }
    }

    #[test]
    fn lines_of_each_layout_are_read() {
        assert_eq!(
            shown(Layout::Haproxy, HAPROXY),
            "10.0.1.2 GET /index.html?a=1 None Some(200) Some(2750) Some(109000000)"
        );
        assert_eq!(
            shown(Layout::Elb, ELB),
            "192.168.131.39 GET /a?b Some(\"www.example.com:80\") Some(200) Some(29) Some(1178000)"
        );
        assert_eq!(
            shown(Layout::Elb, ALB),
            "[2001:db8::7]:2817 POST / Some(\"www.example.com:443\") Some(404) Some(366) Some(2000000000)"
                .replace("[2001:db8::7]:2817", "2001:db8::7")
        );
        assert_eq!(
            shown(Layout::S3, S3),
            "192.0.2.3 GET /examplebucket/s3-dg.pdf None Some(200) Some(4406583) Some(70000000)"
        );
        assert_eq!(
            shown(Layout::Envoy, ENVOY),
            "10.0.35.28 POST /api/v1/a?b=c Some(\"locations\") Some(204) Some(12) Some(226000000)"
        );
        assert_eq!(shown(Layout::Envoy, ISTIO), "- GET /b Some(\"httpbin:8000\") Some(503) Some(91) Some(3000000)");
        for layout in [Layout::Haproxy, Layout::Elb, Layout::S3, Layout::Envoy] {
            assert_eq!(
                shown(layout, r#"203.0.113.7 - - [01/Jan/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 2 "-" "curl/8""#),
                "Malformed"
            );
        }
        assert_eq!(without_port("2001:db8::7"), "2001:db8::7");
    }

    #[test]
    fn each_layout_is_recognised() {
        use crate::format::Format;

        for (line, format) in [
            (HAPROXY, Format::Haproxy),
            (ELB, Format::Elb),
            (ALB, Format::Elb),
            (S3, Format::S3),
            (ENVOY, Format::Envoy),
            (ISTIO, Format::Envoy),
        ] {
            assert_eq!(Format::recognise(line.as_bytes()), Some(format), "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[ \\[\\]\":/0-9a-zGET.-]{0,200}") {
            for layout in [Layout::Haproxy, Layout::Elb, Layout::S3, Layout::Envoy] {
                let _ = read(layout, &text, &Options::default());
            }
        }

        #[test]
        fn a_cut_line_is_read_or_refused(cut in 0_usize..400) {
            for (layout, line) in [
                (Layout::Haproxy, HAPROXY), (Layout::Elb, ELB), (Layout::Elb, ALB), (Layout::S3, S3), (Layout::Envoy, ISTIO),
            ] {
                let _ = read(layout, line.get(..cut.min(line.len())).unwrap_or(line), &Options::default());
            }
        }
    }
}
