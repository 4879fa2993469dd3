//! Servers that send anything: users follow their redirects and keep their cookies.

use brunt_record::catalogue::Counter;
use brunt_record::time::Tick;
use proptest::prelude::*;

use super::*;

/// The user's handling of an answer, with every function of the Lua library that reads a server's words.
const SCRIPT: &str = "brunt.scenario('s', function()
    local a = http:get('/a/b?c=d')
    local location, text = a.headers.location, a.body .. tostring(a.url)
    brunt.check(a, { found = a:find('x', true), matched = a:match('(%w+)') })
    http:post('/form', { form = { [text] = text, list = { location or 1, 2 } }, query = { q = text } })
    http:batch {
      '/x',
      { 'POST', '/y', { multipart = { [text] = { filename = text, content = text, type = text }, [1] = location } } },
      { 'PUT', '/z', { json = { text } } },
    }
    pcall(a.json, a)
  end):inject { brunt.iterations_each(2, 3) }";

/// The first byte of a TLS record that holds a handshake (RFC 8446 §5.1).
const TLS_HANDSHAKE: u8 = 22;

/// A server that gives these answers, in turn.
struct Babbler {
    answers: Vec<Vec<u8>>,
    given: usize,
    /// Bytes of bodies that are still to come, by connection.
    rest: BTreeMap<u64, usize>,
    heads: Arc<std::sync::Mutex<Vec<String>>>,
}

impl Peer for Babbler {
    fn received(&mut self, connection: u64, bytes: &[u8], _now: Tick) -> Reaction {
        // A request's head is one write here, as is a large body, and it is answered whether or not it can be parsed.
        let rest = self.rest.entry(connection).or_default();
        if *rest > 0 {
            *rest = rest.saturating_sub(bytes.len());
        } else {
            let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(bytes.len());
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let length =
                head.split("\r\nContent-Length: ").nth(1).and_then(|rest| rest.split("\r\n").next()?.parse().ok());
            *rest = (end + 4 + length.unwrap_or(0)).saturating_sub(bytes.len().max(end + 4));
            // A redirect to https:// leads here, too: its handshake is no request.
            if bytes.first() != Some(&TLS_HANDSHAKE) {
                self.heads.lock().unwrap().push(head);
            }
        }
        if *rest > 0 {
            return Vec::new();
        }
        let answer = self.answers[self.given % self.answers.len()].clone();
        self.given += 1;
        vec![(MS, Act::Send(answer))]
    }
}

/// Words of URLs, cookies and dates, and others.
fn words() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        4 => prop::sample::select(vec![
            "a", "=", ";", ",", "; ", " ", "/", "//", "..", ".", "?", "#", "%", "%2", ":", "@", "http://", "https://", "HTTP://",
            "ftp://", "127.0.0.1", "127.0.0.1:80", "localhost", "[::1]", ":99999", "Path=", "path", "Domain=", "Domain=.", "Secure",
            "Max-Age=", "Expires=", "HttpOnly", "-1", "0", "1e9", "nan", "Thu, 01 Jan 1970 00:00:00 GMT", "31 Feb 99", "\"", "\t",
            "session", "%s*", "[", "(",
        ])
        .prop_map(str::to_owned),
        1 => "[^\\x00-\\x1f\\x7f]{0,6}",
        1 => (prop::sample::select(vec![" ", "a", "=", "; ", "../", "x=y; "]), 1..3000usize)
            .prop_map(|(word, times)| word.repeat(times)),
    ];
    prop::collection::vec(word, 0..8).prop_map(|words| words.concat())
}

fn answer() -> impl Strategy<Value = Vec<u8>> {
    let status = prop::sample::select(vec![200, 204, 301, 302, 303, 304, 307, 308, 404, 500]);
    let body = prop::collection::vec(any::<u8>(), 0..40);
    (status, prop::option::of(words()), prop::collection::vec(words(), 0..3), body).prop_map(
        |(status, location, cookies, body)| {
            let mut head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n", body.len());
            let location = location.iter().map(|location| ("Location", location));
            for (name, value) in location.chain(cookies.iter().map(|cookie| ("Set-Cookie", cookie))) {
                head.extend([name, ": ", value, "\r\n"]);
            }
            let body = if matches!(status, 204 | 304) { Vec::new() } else { body };
            [head.into_bytes(), b"\r\n".to_vec(), body].concat()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever a server sends: nothing vanishes, each call sends a request, and an error caused by an answer names the
    /// script's line and not the library's.
    #[test]
    fn users_stand_what_servers_say(answers in prop::collection::vec(answer(), 1..5)) {
        let heads = Arc::default();
        let server = Babbler { answers, given: 0, rest: BTreeMap::new(), heads: Arc::clone(&heads) };
        let plan = plan_of(SCRIPT, &[]).unwrap();
        let summary = play_against(&plan, server, &StopHandle::default());
        prop_assert!(matches!(summary.run.ending, Ending::Completed), "{:?}", summary.run.ending);
        for head in heads.lock().unwrap().iter() {
            let mut lines = head.split("\r\n");
            let line = lines.next().unwrap_or("");
            prop_assert_eq!(line.split(' ').count(), 3, "{}", line);
            prop_assert!(line.split(' ').nth(1).is_some_and(|path| path.starts_with('/')), "{}", line);
            for field in lines {
                prop_assert!(field.contains(": ") && !field.contains(['\n', '\r', '\0']), "{:?}", field);
            }
        }
        let total = &summary.total;
        // A call may end before it is sent: other hosts cannot be reached here.
        let received = heads.lock().unwrap().len() as u64;
        prop_assert!((total.statuses.total()..=total.numbers.get(Counter::Due)).contains(&received), "{received}: {total:?}");
        for (error, _) in &total.figures.scenarios.get("s").unwrap().tracebacks {
            prop_assert!(error.starts_with("s.lua:"), "{error}");
        }
    }
}
