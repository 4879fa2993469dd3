//! Requests of a flood, as they go over the wire.

use brunt_plan::secret::Template;

use brunt_protocol::headers::Header;

use super::super::options::Content;
use super::*;
use crate::tests::plan;

fn requests(options: &Options, indices: Range<u64>) -> Result<Vec<String>, String> {
    let env = |name: &str| (name == "TOKEN").then(|| "t0p".to_owned());
    let requests = Requests::prepare(options, &plan(), env).map_err(|e| e.to_string())?;
    let mut flood = Flood::new(Arc::new(requests));
    Ok(indices.map(|i| String::from_utf8_lossy(flood.request(i).unwrap().bytes).into_owned()).collect())
}

fn lines(content: &str) -> Lines {
    Lines { file: "file.txt".into(), content: Content(content.as_bytes().to_vec()) }
}

const AGENT: &str = concat!("User-Agent: brunt/", env!("CARGO_PKG_VERSION"), "\r\n");

#[test]
fn a_plain_request() {
    let expected = format!("GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n{AGENT}\r\n");
    assert_eq!(requests(&Options::default(), 0..2), Ok(vec![expected.clone(), expected]));
}

#[test]
fn headers_replace_ours_and_secrets_are_looked_up() {
    let options = Options {
        method: "POST".into(),
        headers: vec![
            Header::new("host", "example.org"),
            Header::new("User-Agent", "me"),
            Header::new("Authorization", "Bearer @TOKEN"),
        ],
        body: Some(Content(b"hi".to_vec())),
        ..Options::default()
    };
    let expected = "POST /a?b=c HTTP/1.1\r\nhost: example.org\r\nUser-Agent: me\r\nAuthorization: Bearer t0p\r\n\
                    Content-Length: 2\r\n\r\nhi";
    assert_eq!(requests(&options, 0..1), Ok(vec![expected.to_owned()]));
    let basic = Options { basic: Some(Template::secret("me:@TOKEN")), ..Options::default() };
    assert!(requests(&basic, 0..1).unwrap()[0].contains("Authorization: Basic bWU6dDBw\r\n"));
}

#[test]
fn lines_are_taken_in_turn() {
    let options = Options {
        url_lines: Some(lines("/one\r\nPOST /two?x#frag\n\n# not this\nHEAD http://127.0.0.1:8080/three\n")),
        body_lines: Some(lines("a\nbc\n")),
        ..Options::default()
    };
    let got: Vec<_> = requests(&options, 0..4)
        .unwrap()
        .iter()
        .map(|r| (r.lines().next().unwrap_or("").to_owned(), r.rsplit("\r\n").next().unwrap_or("").to_owned()))
        .collect();
    let expected = [
        ("GET /one HTTP/1.1", "a"),
        ("POST /two?x HTTP/1.1", "bc"),
        ("HEAD /three HTTP/1.1", "a"),
        ("GET /one HTTP/1.1", "bc"),
    ];
    assert_eq!(got, expected.map(|(line, body)| (line.to_owned(), body.to_owned())));
}

#[test]
fn a_line_is_taken_as_often_as_it_weighs() {
    let content = "{\"url\": \"/a\", \"weight\": 3}\n/b\n{\"url\": \"/c\", \"weight\": 2}\n";
    let options = Options { url_lines: Some(lines(content)), ..Options::default() };
    let path = |text: &String| text.split(' ').nth(1).unwrap().to_owned();
    let taken: Vec<_> = requests(&options, 0..12).unwrap().iter().map(path).collect();
    assert_eq!(taken[..6], ["/a", "/c", "/a", "/b", "/c", "/a"], "each evenly over all turns");
    assert_eq!(taken[..6], taken[6..]);
    for wrong in ["0", "1001", "-1", "1.5"] {
        let content = format!("{{\"url\": \"/a\", \"weight\": {wrong}}}\n/b\n");
        let options = Options { url_lines: Some(lines(&content)), ..Options::default() };
        assert!(requests(&options, 0..1).is_err(), "{wrong}");
    }
}

#[test]
fn a_line_may_be_a_whole_request() {
    let options = Options {
        headers: vec![Header::new("X", "all"), Header::new("Accept", "text/plain")],
        basic: Some(Template::credentials("me:hunter2")),
        body_lines: Some(lines("of all\n")),
        url_lines: Some(lines(
            "{\"url\": \"/1\", \"headers\": {\"x\": \"@TOKEN\", \"Authorization\": \"Bearer own\"}, \"body\": \"own\"}\n\
             {\"method\": \"PUT\", \"url\": \"/2\", \"body\": {\"a\": 1}}\n\
             /3\n",
        )),
        ..Options::default()
    };
    let got = requests(&options, 0..3).unwrap();
    let host = format!("Host: 127.0.0.1:8080\r\n{AGENT}");
    let basic = "Authorization: Basic bWU6aHVudGVyMg==\r\n";
    assert_eq!(
        got[0],
        format!(
            "POST /1 HTTP/1.1\r\n{host}Accept: text/plain\r\nAuthorization: Bearer own\r\nx: t0p\r\n\
         Content-Length: 3\r\n\r\nown"
        )
    );
    assert_eq!(
        got[1],
        format!(
            "PUT /2 HTTP/1.1\r\n{host}{basic}X: all\r\nAccept: text/plain\r\nContent-Type: application/json\r\n\
         Content-Length: 7\r\n\r\n{{\"a\":1}}"
        )
    );
    assert_eq!(
        got[2],
        format!("GET /3 HTTP/1.1\r\n{host}{basic}X: all\r\nAccept: text/plain\r\nContent-Length: 6\r\n\r\nof all")
    );
}

#[test]
fn lines_may_go_to_several_hosts() {
    let content = "/here\nhttp://127.0.0.1:8080/too\nhttps://b.example/there\nhttp://b.example/other\n";
    let options = Options { url_lines: Some(lines(content)), ..Options::default() };
    let requests = Arc::new(Requests::prepare(&options, &plan(), |_| None).unwrap());
    let targets: Vec<_> = requests.targets().iter().map(|to| format!("{}://{}", to.scheme, to.authority())).collect();
    assert_eq!(targets, ["http://127.0.0.1:8080", "https://b.example", "http://b.example"]);
    let mut flood = Flood::new(requests);
    let mut sent = |index| {
        let target = flood.target(index);
        (target, String::from_utf8_lossy(flood.request(index).unwrap().bytes).into_owned())
    };
    for (index, target, line, host) in [
        (0, 0, "GET /here", "127.0.0.1:8080"),
        (1, 0, "GET /too", "127.0.0.1:8080"),
        (2, 1, "GET /there", "b.example"),
        (7, 2, "GET /other", "b.example"),
    ] {
        assert_eq!(sent(index), (target, format!("{line} HTTP/1.1\r\nHost: {host}\r\n{AGENT}\r\n")));
    }
    let same = Options { url_lines: Some(lines("/a\nhttp://127.0.0.1:8080/b\n")), ..Options::default() };
    assert!(Requests::prepare(&same, &plan(), |_| None).unwrap().targets().is_empty());
}

#[test]
fn large_bodies_are_parts_of_what_all_requests_share() {
    let long = "x".repeat(LARGE_BODY_BYTES);
    let options = Options { body_lines: Some(lines(&format!("a\n{long}\n"))), ..Options::default() };
    let requests = Arc::new(Requests::prepare(&options, &plan(), |_| None).unwrap());
    let mut flood = Flood::new(Arc::clone(&requests));
    assert_eq!(flood.request(0).unwrap().tail, None);
    let message = flood.request(1).unwrap();
    let head = String::from_utf8_lossy(message.bytes);
    assert!(head.ends_with(&format!("Content-Length: {LARGE_BODY_BYTES}\r\n\r\n")), "{head}");
    let tail = message.tail.unwrap();
    assert_eq!(tail.bytes(), long.as_bytes());
    assert!(Arc::ptr_eq(tail.of, requests.bodies.bytes().unwrap()));
}

#[test]
fn whoever_a_url_names_is_known_at_its_origin_alone() {
    let user = |text: &str| Some(Template::literal(text));
    let content = "/here\nhttp://127.0.0.1:8080/too\nhttp://127.0.0.1:8081/port\nhttps://127.0.0.1:8080/scheme\n\
                   http://ann@b.example/own\n{\"url\": \"http://bob:p%3Aw@b.example/field\", \"headers\": {\"authorization\": \"Bearer x\"}}\n";
    let authorized = |options: Options| {
        let all = requests(&Options { url_lines: Some(lines(content)), ..options }, 0..6).unwrap();
        let field = |text: &String| {
            let line = text.lines().find(|line| line.to_ascii_lowercase().starts_with("authorization: "))?;
            line.split_once(": ").map(|(_, value)| value.to_owned())
        };
        all.iter().map(field).collect::<Vec<_>>()
    };
    let (me, ann, own) = (Some("Basic bWU6cHc="), Some("Basic YW5uOg=="), Some("Bearer x"));
    let of = |all: [Option<&str>; 6]| all.map(|value| value.map(str::to_owned)).to_vec();
    assert_eq!(authorized(Options { user: user("me:pw"), ..Options::default() }), of([me, me, None, None, ann, own]));
    // What flags say is for every target that the user names.
    assert_eq!(authorized(Options { basic: user("me:pw"), ..Options::default() }), of([me, me, me, me, ann, own]));
    let headers = vec![Header::new("Authorization", "Bearer all")];
    let all = Some("Bearer all");
    let both = Options { headers, user: user("me:pw"), ..Options::default() };
    assert_eq!(authorized(both), of([all, all, all, all, ann, own]));
}

#[test]
fn a_body_is_sent_in_chunks_where_a_field_says_so() {
    let chunked = || vec![Header::new("Transfer-Encoding", "chunked")];
    let with = |options: Options| requests(&Options { headers: chunked(), ..options }, 0..1).map(|all| all[0].clone());
    let body = |text: &str| Some(Content(text.as_bytes().to_vec()));
    let sent = with(Options { method: "PUT".into(), body: body("some text"), ..Options::default() }).unwrap();
    assert!(sent.ends_with("Transfer-Encoding: chunked\r\n\r\n9\r\nsome text\r\n0\r\n\r\n"), "{sent}");
    assert!(!sent.contains("Content-Length"), "{sent}");
    assert!(with(Options::default()).unwrap().ends_with("\r\n\r\n0\r\n\r\n"), "no body has an end, too");
    let two = Options { http: super::super::options::Version::Two, ..Options::default() };
    assert!(with(two).unwrap_err().contains("HTTP/2 has no chunks"));
    // Some lines are in chunks, others are not; a large body is shared in both forms.
    let content = "{\"url\": \"/a\", \"headers\": {\"Transfer-Encoding\": \"chunked\"}}\n/b\n";
    let long = "y".repeat(LARGE_BODY_BYTES);
    let options =
        Options { method: "POST".into(), url_lines: Some(lines(content)), body: body(&long), ..Options::default() };
    let mut flood = Flood::new(Arc::new(Requests::prepare(&options, &plan(), |_| None).unwrap()));
    let tail = |flood: &mut Flood, index| flood.request(index).unwrap().tail.unwrap().bytes().to_vec();
    assert_eq!(tail(&mut flood, 0), in_chunks(&[long.as_bytes()]));
    assert_eq!(tail(&mut flood, 1), long.as_bytes());
}

#[test]
fn a_method_in_other_letters_is_named() {
    for (method, expected) in [("get", "expected GET"), ("Patch", "expected PATCH")] {
        let error = requests(&Options { method: method.into(), ..Options::default() }, 0..1).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let line = requests(&Options { url_lines: Some(lines("/a\npost /b\n")), ..Options::default() }, 0..1).unwrap_err();
    assert!(line.starts_with("file.txt, line 2: the method 'post'"), "{line}");
    assert!(
        requests(&Options { method: "purge".into(), ..Options::default() }, 0..1).is_ok(),
        "any other is taken as it is"
    );
}

#[test]
fn random_order_depends_on_the_index_alone() {
    let options = Options { url_lines: Some(lines("/1\n/2\n/3\n")), order: RequestOrder::Random, ..Options::default() };
    let all = requests(&options, 0..300).unwrap();
    assert_eq!(requests(&options, 100..101).unwrap()[0], all[100]);
    for path in ["/1", "/2", "/3"] {
        let n = all.iter().filter(|request| request.starts_with(&format!("GET {path} "))).count();
        assert!((60..140).contains(&n), "{path}: {n}");
    }
}

#[test]
fn what_is_wrong_is_said_with_file_and_line() {
    for (content, expected) in [
        ("/a\n/b c d\n", "file.txt, line 2: the method '/b', column 1"),
        ("/a\nGET /b c\n", "file.txt, line 2: '/b c', column 3: ' ' cannot stand in a URL"),
        ("/a\nftp://example.org/\n", "file.txt, line 2: 'ftp://example.org' is not http:// or https://"),
        ("b\n", "file.txt, line 1: expected a path that begins with /"),
        ("/a\n{\"url\": 1}\n", "file.txt, line 2: expected a request in JSON"),
        ("{\"url\": \"/\", \"headers\": {\"X\": \"a\\r\\nY: b\"}}\n", "file.txt, line 1: "),
        ("{\"url\": \"/\", \"method\": \"A B\"}\n", "file.txt, line 1: the method 'A B', column 2"),
        ("\n# x\n", "file.txt: there is no URL in it"),
    ] {
        let error = requests(&Options { url_lines: Some(lines(content)), ..Options::default() }, 0..1).unwrap_err();
        assert!(error.starts_with(expected), "{content}: {error}");
    }
}

#[test]
fn nothing_can_be_smuggled_through_a_header() {
    for header in [Header::new("X", "a\r\nY: b"), Header::new("X\r\nY", "a"), Header::new("", "a")] {
        assert!(requests(&Options { headers: vec![header], ..Options::default() }, 0..1).is_err());
    }
    let unset = Options { headers: vec![Header::new("X", "@NOPE")], ..Options::default() };
    assert!(requests(&unset, 0..1).unwrap_err().contains("NOPE, which is not set"));
}

#[test]
fn a_traced_request_has_a_field_more_and_others_are_as_they_were() {
    let options = |headers: Vec<Header>, trace_ratio| Options {
        method: "POST".to_owned(),
        headers,
        body: Some(Content(b"a\r\nb".to_vec())),
        trace_ratio,
        ..Options::default()
    };
    let flood = |options: &Options| Flood::new(Arc::new(Requests::prepare(options, &plan(), |_| None).unwrap()));
    let plain = flood(&options(Vec::new(), None)).request(0).unwrap().bytes.to_vec();
    let mut traced = flood(&options(Vec::new(), Some(1.0)));
    let ids = traced.trace(7).unwrap();
    let text = String::from_utf8(traced.request(7).unwrap().bytes.to_vec()).unwrap();
    let field = format!("traceparent: {ids}\r\n");
    assert!(text.starts_with("POST ") && text.matches(&field).count() == 1, "{text}");
    assert_eq!(text.replace(&field, "").as_bytes(), plain);
    // What the user sets goes before.
    let mut own = flood(&options(vec![Header::new("TraceParent", "00-mine")], Some(1.0)));
    assert_eq!(own.trace(7), None);
    let text = String::from_utf8(own.request(7).unwrap().bytes.to_vec()).unwrap();
    assert!(text.contains("TraceParent: 00-mine\r\n") && !text.contains("traceparent"), "{text}");
    let mut few = flood(&options(Vec::new(), Some(0.01)));
    let count = (0..10_000).filter(|index| few.request(*index).unwrap().bytes.len() > plain.len()).count();
    assert!((50..170).contains(&count), "{count}");
}
