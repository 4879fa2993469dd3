use proptest::prelude::*;

use super::*;
use crate::entry::Took;

const COMBINED: &str =
    r#"203.0.113.7 - - [01/Jan/2026:00:00:01 +0000] "GET /a?b=c HTTP/1.1" 200 512 "http://x/" "curl/8 \"q\"""#;
const CADDY: &str = r#"{"level":"info","ts":1767225602.5,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"203.0.113.7","method":"GET","host":"shop.test","uri":"/a?b=c","headers":{"User-Agent":["curl/8"]}},"duration":0.5,"size":512,"status":200}"#;
const TRAEFIK: &str = r#"{"ClientHost":"203.0.113.7","DownstreamContentSize":512,"DownstreamStatus":200,"Duration":1500000,"RequestHost":"shop.test","RequestMethod":"GET","RequestPath":"/a?b=c","StartUTC":"2026-01-01T00:00:01.25Z","request_User-Agent":"curl/8"}"#;
const ENVOY: &str = r#"{"start_time":"2026-01-01T00:00:01.250Z","method":"GET","path":"/a?b=c","authority":"shop.test","response_code":200,"bytes_sent":512,"duration":12,"x_forwarded_for":"203.0.113.7"}"#;
const VEGETA: &str = r#"{"method":"POST","url":"http://shop.test/a","body":"aGk=","header":{"X-Id":["1","2"]}}"#;
const OWN: &str = r#"{"time":"2026-01-01T00:00:01.25Z","method":"GET","url":"/a?b=c","session":"s1","status":200,"bytes":512,"duration_s":0.012}"#;

const PROXY: &str = r#"{"unix_ms":1767225601250,"client":"203.0.113.7","method":"GET","target":"/a?b=c","version":"HTTP/1.1","status":200,"body_bytes":512,"took_us":1500,"coalesced":null,"whole":true,"error":null}"#;

fn read(format: Format, line: &str) -> Result<Option<Entry>, Skip> {
    Parser::new(format, Options::default()).unwrap().line(line.as_bytes())
}

fn entry(format: Format, line: &str) -> Entry {
    read(format, line).unwrap().unwrap()
}

#[test]
fn each_format_is_recognised_and_read() {
    let lines = [
        (Format::Combined, COMBINED),
        (Format::Caddy, CADDY),
        (Format::Traefik, TRAEFIK),
        (Format::Envoy, ENVOY),
        (Format::Proxy, PROXY),
        (Format::Ndjson, OWN),
    ];
    for (format, line) in lines {
        assert_eq!(Format::recognise(format!("{line}\n{line}\n").as_bytes()), Some(format), "{line}");
        let entry = entry(format, line);
        assert_eq!((entry.method.as_str(), entry.url.as_str()), ("GET", "/a?b=c"), "{format:?}");
        assert_eq!((entry.status, entry.bytes), (Some(200), Some(512)), "{format:?}");
        assert!(entry.session.is_some() && entry.at.is_some(), "{format:?}");
    }
    let common = r#"::1 - bob [01/Jan/2026:00:00:01 +0000] "HEAD / HTTP/1.0" 304 -"#;
    assert_eq!(Format::recognise(common.as_bytes()), Some(Format::Common));
    assert_eq!(entry(Format::Common, common).bytes, None);
    assert_eq!(Format::recognise(VEGETA.as_bytes()), Some(Format::Vegeta));
    let target = entry(Format::Vegeta, VEGETA);
    assert_eq!((target.at, target.body.as_deref(), target.headers.len()), (None, Some(b"hi".as_slice()), 2));
    assert_eq!(Format::recognise(b"time,method,url\n2026-01-01T00:00:01Z,GET,/a\n"), Some(Format::Csv));
    assert_eq!(Format::recognise(b"{\"log\": {\"version\": \"1.2\", \"entries\": ["), Some(Format::Har));
    assert_eq!(Format::recognise(b"hello\nworld\n"), None);
    assert_eq!(Format::recognise(b""), None);
}

#[test]
fn a_time_of_the_end_is_moved_to_the_beginning() {
    // Caddy logs at the end of a request, half a second after it began.
    assert_eq!(entry(Format::Caddy, CADDY).at.unwrap().ns, 1_767_225_602_000_000_000);
    assert_eq!(entry(Format::Traefik, TRAEFIK).at.unwrap().ns, 1_767_225_601_250_000_000);
    let template = "$msec $request_time \"$request\"";
    let options = Options { template: Some(template.to_owned()), ..Options::default() };
    let mut parser = Parser::new(Format::Template, options).unwrap();
    let entry = parser.line(b"1767225602.500 0.500 \"GET / HTTP/2.0\"").unwrap().unwrap();
    assert_eq!((entry.at.unwrap().ns, entry.duration_ns), (1_767_225_602_000_000_000, Some(500_000_000)));
}

#[test]
fn durations_are_read_or_marked() {
    for (text, expected) in [
        ("0.5", Took::Ns(500_000_000)),
        ("0,5", Took::Ns(500_000_000)),
        ("12ms", Took::Ns(12_000_000)),
        ("+7", Took::Ns(7_000_000_000)),
        ("-", Took::Absent),
        ("-1", Took::Absent),
        ("", Took::Absent),
        ("-2", Took::Unread),
        ("0.1, 0.2", Took::Unread),
        ("fast", Took::Unread),
        ("1h", Took::Unread),
        ("NaN", Took::Unread),
    ] {
        assert_eq!(Took::read(text, 1e9), expected, "{text}");
    }
    let options =
        Options { template: Some("$time_iso8601 $request_time \"$request\"".to_owned()), ..Options::default() };
    let mut template = Parser::new(Format::Template, options).unwrap();
    let templated = template.line(br#"2026-01-01T00:00:00Z x "GET / HTTP/1.1""#).unwrap().unwrap();
    for marked in [
        templated,
        entry(Format::Caddy, &CADDY.replace("\"duration\":0.5", "\"duration\":\"x\"")),
        entry(Format::Ndjson, &OWN.replace("0.012", "\"x\"")),
        entry(
            Format::Elb,
            "2026-01-01T10:00:00Z lb 203.0.113.7:1 10.0.0.1:80 0.1 x 0.1 200 200 0 5 \"GET http://h:80/a HTTP/1.1\" \"UA\"",
        ),
    ] {
        assert_eq!((marked.duration_ns, marked.has_unread_duration), (None, true), "{marked:?}");
    }
}

#[test]
fn templates_of_both_servers() {
    let apache = r#"%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i" %D"#;
    let options = Options { template: Some(apache.to_owned()), ..Options::default() };
    let mut parser = Parser::new(Format::Template, options).unwrap();
    let read = parser.line(format!("{COMBINED} 2500").as_bytes()).unwrap().unwrap();
    assert_eq!((read.url.as_str(), read.duration_ns), ("/a?b=c", Some(2_500_000)));
    assert_eq!(header(&read.headers, "user-agent"), Some("curl/8 \"q\""));
    // As the server's configuration has it, within quotes.
    let escaped = r#"%h [%{%Y-%m-%d %H:%M:%S}t] \"%r\" %>s %{usec_frac}t"#;
    let options = Options { template: Some(escaped.to_owned()), ..Options::default() };
    let mut parser = Parser::new(Format::Template, options).unwrap();
    let read = parser.line(br#"203.0.113.7 [2026-01-01 00:00:01] "GET /a HTTP/1.1" 200 250"#).unwrap().unwrap();
    assert_eq!((read.url.as_str(), read.at.map(|at| at.ns)), ("/a", Some(1_767_225_601_000_000_000)));
    let error = |text: &str| Template::parse(text).unwrap_err();
    assert_eq!(error("$status"), TemplateError::Lacks("time"));
    assert_eq!(error("$msec"), TemplateError::Lacks("request"));
    assert_eq!(error("$msec$request"), TemplateError::Adjoining("request".to_owned()));
    assert_eq!(error("%t %r %Y"), TemplateError::Directive("Y".to_owned()));
}

#[test]
fn more_behind_the_combined_format_does_no_harm() {
    let line = format!("{COMBINED} \"198.51.100.1\" rt=0.1");
    assert_eq!(entry(Format::Combined, &line).url, "/a?b=c");
}

#[test]
fn what_is_wrong_with_a_line_has_a_name() {
    let long = "x".repeat(MOST_LINE_BYTES + 1);
    let cases = [
        (long.as_str(), Skip::TooLong),
        ("\u{1}\u{2}", Skip::Binary),
        (r#"203.0.113.7 - - [01/Jan/2026:00:00:01 +0000] "GET /a?b"#, Skip::Incomplete),
        ("203.0.113.7 - - [01/Ja", Skip::Incomplete),
        (r#"203.0.113.7 - - [41/Jan/2026:00:00:01 +0000] "GET / HTTP/1.1" 200 1"#, Skip::BadTime),
        (r#"203.0.113.7 - - [01/Jan/2026:00:00:01 +0000] "\x16\x03\x01" 400 0"#, Skip::NoRequest),
        (r#"203.0.113.7 - - [01/Jan/2026:00:00:01 +0000] "-" 408 0"#, Skip::NoRequest),
        (r#"203.0.113.7 - - [01/Jan/2026:00:00:01 +0000] "CONNECT a:443 HTTP/1.1" 400 0"#, Skip::NoRequest),
    ];
    for (line, expected) in cases {
        assert_eq!(read(Format::Common, line), Err(expected), "{}", line.get(..40).unwrap_or(line));
    }
    assert_eq!(Parser::new(Format::Common, Options::default()).unwrap().line(b"\xff\xfe"), Err(Skip::Binary));
    assert_eq!(read(Format::Ndjson, r#"{"time":"2026-01-01T00:00:01Z","url":"/a"#), Err(Skip::Incomplete));
    assert_eq!(read(Format::Ndjson, r#"{"url":"/a"}"#), Err(Skip::NoTime));
    assert_eq!(read(Format::Ndjson, "{]"), Err(Skip::Malformed));
    assert_eq!(read(Format::Ndjson, r#"{"time":"2200-01-01T00:00:01Z","url":"/a"}"#), Err(Skip::BadTime));
    // A duration of 585 years, which the stamp of an end has behind it.
    let options = Options { template: Some("$msec $request_time \"$request\"".to_owned()), ..Options::default() };
    let line = br#"1767225601.500 21767225602.5 "GET / HTTP/1.1""#;
    assert_eq!(Parser::new(Format::Template, options).unwrap().line(line), Err(Skip::BadTime));
    assert_eq!(read(Format::Common, "# a comment"), Ok(None));
}

#[test]
fn sessions_are_what_was_asked_for() {
    let line =
        r#"{"time":"2026-01-01T00:00:01Z","url":"/","client":"c","user":{"id":7},"headers":{"Cookie":"a=1; sid=x"}}"#;
    let session = |by: SessionBy| {
        let options = Options { session: by, ..Options::default() };
        Parser::new(Format::Ndjson, options).unwrap().line(line.as_bytes()).unwrap().unwrap().session
    };
    assert_eq!(session(SessionBy::Client).as_deref(), Some("c"));
    assert_eq!(session(SessionBy::Cookie("sid".to_owned())).as_deref(), Some("x"));
    assert_eq!(session(SessionBy::Field("user.id".to_owned())).as_deref(), Some("7"));
    assert_eq!(session(SessionBy::Cookie("other".to_owned())), None);
    assert_eq!(session(SessionBy::None), None);
}

#[test]
fn fields_by_name() {
    let fields = JsonFields::parse("time=@t:end,path=req.p,query=req.q,duration=took:ms").unwrap();
    let options = Options { fields: Some(fields), ..Options::default() };
    let mut parser = Parser::new(Format::Ndjson, options).unwrap();
    let line = br#"{"@t":1767225602,"req":{"p":"/a","q":"b=c"},"took":500}"#;
    let entry = parser.line(line).unwrap().unwrap();
    assert_eq!((entry.url.as_str(), entry.at.unwrap().ns), ("/a?b=c", 1_767_225_601_500_000_000));
    for wrong in ["path=a", "time=a", "time", "when=a,path=b", "time=a,path=b,duration=c:h"] {
        assert!(JsonFields::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_table_with_quotes() {
    let mut parser = Parser::new(Format::Csv, Options::default()).unwrap();
    assert_eq!(parser.line(b"time,method,url,body"), Ok(None));
    let entry = parser.line(br#"2026-01-01T00:00:01Z,POST,/a,"say ""hi"", you""#).unwrap().unwrap();
    assert_eq!(entry.body.as_deref(), Some(br#"say "hi", you"#.as_slice()));
    assert_eq!(parser.line(b"2026-01-01T00:00:01Z,POST"), Err(Skip::Incomplete));
    assert_eq!(parser.line(b"2026-01-01T00:00:01Z,POST,/a,\"hi"), Err(Skip::Incomplete));
}

#[test]
fn an_archive() {
    let archive = br#"{"log":{"version":"1.2","entries":[
        {"startedDateTime":"2026-01-01T00:00:01.250Z","time":12.5,
         "request":{"method":"POST","url":"https://shop.test/a#top","headers":[{"name":":method","value":"POST"},{"name":"X","value":"1"}],
                    "postData":{"mimeType":"text/plain","text":"hi"}},
         "response":{"status":201,"content":{"size":3}}},
        {"startedDateTime":"never","request":{"method":"GET","url":"https://shop.test/"}},
        {"startedDateTime":"2026-01-01T00:00:02Z","request":{}},
        {"request":{"method":"GET","url":"https://shop.test/"}}]}}"#;
    let marked = ["\u{feff}".as_bytes(), archive.as_slice()].concat();
    let entries = har::entries(&marked, &Options::default()).unwrap();
    let first = entries[0].as_ref().unwrap();
    assert_eq!((first.url.as_str(), first.headers.len(), first.status), ("https://shop.test/a", 1, Some(201)));
    assert_eq!((first.body.as_deref(), first.duration_ns), (Some(b"hi".as_slice()), Some(12_500_000)));
    assert_eq!(
        (&entries[1], &entries[2], &entries[3]),
        (&Err(Skip::BadTime), &Err(Skip::Malformed), &Err(Skip::NoTime))
    );
    assert!(har::entries(b"{}", &Options::default()).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_skipped(line in prop::collection::vec(any::<u8>(), 0..200)) {
        for format in Format::ALL {
            let _ = Parser::new(format, Options::default()).unwrap().line(&line);
        }
        let _ = Format::recognise(&line);
        let _ = har::entries(&line, &Options::default());
    }

    /// A line that was cut anywhere is skipped or is a whole request: a cut can only shorten its end.
    #[test]
    fn a_line_may_be_cut_anywhere(which in 0..6_usize, cut in any::<prop::sample::Index>()) {
        let (format, line) = [
            (Format::Combined, COMBINED), (Format::Caddy, CADDY), (Format::Traefik, TRAEFIK),
            (Format::Envoy, ENVOY), (Format::Vegeta, VEGETA), (Format::Ndjson, OWN),
        ][which];
        let at = cut.index(line.len());
        if let Some(part) = line.get(..at)
            && !part.is_empty()
        {
            prop_assert!(read(format, part).is_err(), "{part}");
        }
    }

    #[test]
    fn any_template_is_refused_or_reads_any_line(template in "[$%a-z_ \"{}\\[\\]]{0,40}", line in "\\PC{0,80}") {
        let options = Options { template: Some(format!("$msec {template} $request")), ..Options::default() };
        if let Ok(mut parser) = Parser::new(Format::Template, options) {
            let _ = parser.line(line.as_bytes());
        }
    }
}
