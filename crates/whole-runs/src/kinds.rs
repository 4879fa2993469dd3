//! Distinctions that floods make: kinds of answers, and names of the lines in a file.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use brunt_engine::simulated::{Act, Peer, Reaction};
use brunt_http1::options::{Content, Lines, Options, Version};
use brunt_http2::frame::{ErrorCode, flag, kind};
use brunt_judge::remarks::About;
use brunt_plan::arrivals::Spread;
use brunt_plan::plan::{Load, Plan, StopRule};
use brunt_record::catalogue::Counter;
use brunt_record::outcome::Failure;
use brunt_record::time::Tick;

use super::http2::{Server, frame, reset};
use super::{MS, SECOND_NS, carry_out, plan};

const USUAL: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{\"ok\":true}";

/// A server behind a proxy, which for a while answers every other request in the server's place.
struct Proxied {
    away: Range<u64>,
    other: &'static str,
    number: u64,
}

impl Peer for Proxied {
    fn connecting(&mut self, _now: Tick) -> Reaction {
        vec![(50_000, Act::Accept)]
    }

    fn received(&mut self, _connection: u64, bytes: &[u8], now: Tick) -> Reaction {
        let requests = bytes.windows(4).filter(|four| *four == b"\r\n\r\n").count();
        let answers = (0..requests).map(|_| {
            self.number += 1;
            let missing = bytes.starts_with(b"GET /missing");
            let answer = match () {
                () if missing => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
                () if self.away.contains(&now.ns()) && self.number.is_multiple_of(2) => self.other,
                () => USUAL,
            };
            (MS, Act::Send(answer.as_bytes().to_vec()))
        });
        answers.collect()
    }
}

fn at_rate(rate: &str) -> Plan {
    Plan {
        load: Load::Open { profile: rate.parse().unwrap(), arrivals: Spread::Uniform },
        stop: StopRule { duration_ns: Some(10 * SECOND_NS), requests: None },
        connections: 8.into(),
        ..plan("http://127.0.0.1/")
    }
}

#[test]
fn an_answer_of_another_kind_is_found_with_its_time_and_an_example() {
    let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 18\r\n\r\n<html>Sorry!</html";
    let login = "HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n";
    for (rate, reconnect) in [("50", false), ("5000", false), ("200", true)] {
        for (other, said) in [(page, "<html>Sorry!"), (login, "Location: /login")] {
            let plan = Plan { reconnect, ..at_rate(rate) };
            let peer = || Proxied { away: 4 * SECOND_NS..7 * SECOND_NS, other, number: 0 };
            let outcome = carry_out(&plan, peer());
            let remarks = &outcome.summary.remarks;
            let found = remarks.iter().find(|remark| remark.about == About::AnotherAnswer);
            let found = found.unwrap_or_else(|| panic!("{rate}/s, {said}: {remarks:?}"));
            assert!(
                found.message.to_string().contains(said) && found.message.to_string().contains("application/json"),
                "{}",
                found.message
            );
            // The load begins about a second into the simulation.
            let (from, to) = (found.from_ns.unwrap(), found.to_ns.unwrap());
            assert!(
                (2900 * MS..3300 * MS).contains(&from) && (5800 * MS..6300 * MS).contains(&to),
                "{rate}/s: {found:?}"
            );
            assert!((0.4..0.6).contains(&found.share_ratio.unwrap()), "{found:?}");
            let steady = carry_out(&plan, Proxied { away: 0..0, ..peer() });
            assert_eq!(steady.summary.remarks.iter().find(|remark| remark.about == About::AnotherAnswer), None);
        }
    }
}

/// `:status: 200` (RFC 7541, appendix A) with a media type and a body, the answer on a stream.
fn over_streams(stream: u32, content_type: &str, body: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content_type.len()).unwrap();
    let fields = [&[0x88, 0x0f, 0x10, length], content_type.as_bytes()].concat();
    [frame(kind::HEADERS, flag::END_HEADERS, stream, &fields), frame(kind::DATA, flag::END_STREAM, stream, body)]
        .concat()
}

/// Answers come out of order, and some calls are reset: the answer that is examined is the one that is reported.
#[test]
fn an_answer_of_another_kind_is_found_over_streams() {
    for (rate, streams) in [("50", 1), ("2000", 20)] {
        let calls: u32 = 10 * rate.parse::<u32>().unwrap();
        let number = AtomicU32::new(0);
        let server = Server::new(&[], move |_, stream| {
            let number = number.fetch_add(1, Ordering::Relaxed);
            let is_away = (calls * 4 / 10..calls * 7 / 10).contains(&number) && number.is_multiple_of(2);
            let (content_type, body) = if is_away { ("text/html", "<html>Sorry!") } else { ("application/json", "{}") };
            let answer = match number % 50 {
                49 => reset(stream, ErrorCode::CANCEL),
                _ => over_streams(stream, content_type, body.as_bytes()),
            };
            vec![(MS * u64::from(1 + number % 7), Act::Send(answer))]
        });
        let options = Options { http: Version::Two, ..Options::default() };
        let plan = Plan { pipeline: streams, protocol: options.to_protocol(), ..at_rate(rate) };
        let summary = carry_out(&plan, server).summary;
        let found = summary.remarks.iter().find(|remark| remark.about == About::AnotherAnswer);
        let found = found.unwrap_or_else(|| panic!("{rate}/s: {:?}", summary.remarks));
        assert!(
            found.message.to_string().contains("text/html") && found.message.to_string().contains("<html>Sorry!"),
            "{}",
            found.message
        );
        let (from, to) = (found.from_ns.unwrap(), found.to_ns.unwrap());
        assert!((3800 * MS..4200 * MS).contains(&from) && (6800 * MS..7200 * MS).contains(&to), "{rate}/s: {found:?}");
        assert!((0.4..0.6).contains(&found.share_ratio.unwrap()), "{found:?}");
    }
}

#[test]
fn a_body_without_the_expected_text_is_a_failed_call() {
    let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 18\r\n\r\n<html>Sorry!</html";
    let options = Options { expect_body: Some("\"ok\":true".to_owned()), ..Options::default() };
    let plan = Plan { protocol: options.to_protocol(), ..at_rate("200") };
    let summary = carry_out(&plan, Proxied { away: 4 * SECOND_NS..7 * SECOND_NS, other: page, number: 0 }).summary;
    let failed = summary.failures(Failure::Mismatch);
    assert!((290..=310).contains(&failed), "{failed}");
    assert_eq!(summary.total.failures.reasons(Failure::Mismatch), [("the body has no '\"ok\":true'", failed)]);
    assert_eq!(summary.total.numbers.get(Counter::ConnectionsMade), 8, "the connection goes on");
}

#[test]
fn lines_of_a_file_have_figures_by_name_that_add_up() {
    let lines = Lines { file: "lines".to_owned(), content: Content(b"/a?x=1\nPOST /a\n/missing\n/a?x=2\n".to_vec()) };
    let options = Options { url_lines: Some(lines), ..Options::default() };
    for load in [at_rate("200").load, Load::Closed {}] {
        let stop = StopRule { duration_ns: None, requests: Some(1000) };
        let plan = Plan { protocol: options.to_protocol(), load, stop, warmup_ns: SECOND_NS, ..at_rate("200") };
        let summary = carry_out(&plan, Proxied { away: 0..0, other: USUAL, number: 0 }).summary;
        let calls: Vec<_> = summary.total.figures.requests.iter().collect();
        let due: Vec<_> = calls.iter().map(|(name, calls)| (*name, calls.numbers.get(Counter::Due))).collect();
        assert_eq!(due, [("GET /a", 500), ("POST /a", 250), ("GET /missing", 250)]);
        assert!(calls.iter().all(|(_, calls)| calls.ended() == calls.numbers.get(Counter::Due)));
        assert_eq!(calls[2].1.not_ok(&plan.ok_status), 250);
        let failing = summary.remarks.iter().find(|remark| remark.about == About::FailingRequest);
        assert_eq!(failing.and_then(|remark| remark.request.as_deref()), Some("GET /missing"));
        assert_eq!(summary.total.examples.get("404")[0].request, "GET /missing");
    }
}
