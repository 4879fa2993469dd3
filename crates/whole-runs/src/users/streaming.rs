//! Users who take the messages of streams one by one.

use brunt_http2::frame::{ErrorCode, setting};
use brunt_judge::remarks::About;
use brunt_judge::summary::Summary;
use brunt_record::catalogue::Counter;
use brunt_record::outcome::Failure;

use super::super::http2::{Server, events, goaway};
use super::super::streams::{END, HEAD, Stream, event, stream};
use super::super::{MS, StopHandle};
use super::{plan_of, play, play_against};
use brunt_engine::simulated::{Act, Peer};

/// Three events after 10, 30 and 60 ms, and the end.
fn three() -> Stream {
    stream(vec![
        (10 * MS, HEAD.to_owned() + &event("a")),
        (30 * MS, event("b")),
        (60 * MS, event("c") + &event("[DONE]") + END),
    ])
}

fn run(script: &str, peer: Stream) -> Summary {
    run_with("", script, peer)
}

/// A run with further options of the client.
fn run_with(options: &str, script: &str, peer: impl Peer) -> Summary {
    let script = format!(
        "local llm = brunt.http {{ base = 'http://127.0.0.1', last_message = '[DONE]', stall_timeout = '40ms', {options} }};
         {script}"
    );
    let summary = play_against(&plan_of(&script, &[]).unwrap(), peer, &StopHandle::default());
    let errors: Vec<_> = summary.breakdown.scenarios.iter().flat_map(|scenario| &scenario.tracebacks).collect();
    assert!(errors.is_empty(), "{errors:?}");
    for check in &summary.breakdown.checks {
        assert_eq!(check.fails, 0, "{}: {:?}", check.name, check.example);
    }
    summary
}

/// A scenario of one user who runs this body `times` times.
fn scenario(times: u32, body: &str) -> String {
    format!("brunt.scenario('s', function(vu) {body} end):inject {{ brunt.iterations_each(1, {times}) }}")
}

#[test]
fn each_message_comes_to_its_user_and_is_timed_by_name() {
    let body = "local seen = {}
        local events = llm:events('/chat', { name = 'chat' })
        for event in events do
          seen[#seen + 1] = event.event .. '=' .. event.data
        end
        brunt.check(events, { ['200'] = events.status == 200, ok = events.ok })
        brunt.check(nil, { seen = table.concat(seen, ' ') == 'message=a message=b message=c' })";
    let summary = run(&scenario(3, body), three());
    assert_eq!(
        (summary.total.statuses.sorted(), summary.total.numbers.get(Counter::ConnectionsMade)),
        (vec![(200, 3)], 1)
    );
    let chat = summary.total.figures.requests.get("chat").unwrap().messages();
    let all = summary.total.messages();
    assert_eq!((all.count(), all.gap()), (chat.count(), chat.gap()));
    assert_eq!((chat.count(), chat.streams(), chat.left()), (9, 3, 0));
    assert_eq!(
        (chat.first().known.max(), chat.gap().known.min(), chat.gap().known.max()),
        (Some(10 * MS), Some(20 * MS), Some(30 * MS))
    );
    assert_eq!(summary.breakdown.requests[0].messages.as_ref().unwrap().numbers.get(Counter::Messages), 9);
}

#[test]
fn what_a_user_does_between_messages_is_no_gap() {
    let body = "local n = 0
        for _ in llm:events('/chat') do n = n + 1; brunt.pause(0.045) end
        brunt.check(nil, { all = n == 3 })";
    let total = run(&scenario(2, body), three()).total;
    let all = total.messages();
    assert_eq!((all.count(), all.gap().known.max(), all.together()), (6, Some(30 * MS), 0));
}

#[test]
fn a_stream_that_is_left_counts_as_answered_and_costs_its_connection() {
    for leave in ["break", "events:close(); break", "return"] {
        let body = format!("local events = llm:events('/chat'); for event in events do {leave} end");
        let summary = run(&scenario(4, &body), three());
        let total = &summary.total;
        assert_eq!((total.statuses.sorted(), total.failures.total()), (vec![(200, 4)], 0), "{leave}");
        assert_eq!(
            (total.messages().left(), total.messages().count(), total.numbers.get(Counter::ConnectionsMade)),
            (4, 4, 4),
            "{leave}"
        );
        assert_eq!(total.messages().last().max(), Some(10 * MS));
        assert!(total.troubles.total() == 0, "{:?}", total.troubles);
    }
    let body = "local events = llm:events('/chat'); events:close()
        brunt.check(nil, { named = events.error == 'closed', why = events.reason:find('before its first message') })";
    assert_eq!(run(&scenario(2, body), three()).failures(Failure::Closed), 2);
}

#[test]
fn streams_go_on_beside_other_calls_and_streams() {
    let body = "local one, other, n = llm:events('/one'), llm:events('/other'), 0
        for event in one do
          n = n + 1
          brunt.check(other:next(), { same = other ~= nil })
        end
        brunt.check(nil, { all = n == 3, ended = other:next() == nil and other.ok and one.ok })";
    let total = run(&scenario(2, body), three()).total;
    assert_eq!(
        (total.messages().streams(), total.messages().count(), total.numbers.get(Counter::ConnectionsMade)),
        (4, 12, 2)
    );
}

#[test]
fn a_stream_that_stalls_or_ends_early_is_told_by_name() {
    let stalls = stream(vec![(10 * MS, HEAD.to_owned() + &event("a")), (60 * MS, event("b") + END)]);
    let body = "local n, events = 0, llm:events('/chat')
        for event in events do n = n + 1 end
        brunt.check(nil, { named = events.error == 'NAME', messages = n == 1 })";
    let summary = run(&scenario(2, &body.replace("NAME", "stalled")), stalls);
    assert_eq!((summary.failures(Failure::Stalled), summary.total.messages().gap().bounds.max()), (2, Some(40 * MS)));
    let early = stream(vec![(10 * MS, HEAD.to_owned() + &event("a")), (20 * MS, END.to_owned())]);
    let summary = run(&scenario(2, &body.replace("NAME", "ended_early")), early);
    assert_eq!((summary.failures(Failure::EndedEarly), summary.total.numbers.get(Counter::ConnectionsMade)), (2, 1));
}

#[test]
fn messages_that_nobody_takes_are_bounded() {
    let many = event("x").repeat(110_000);
    let acts = vec![(10 * MS, HEAD.to_owned() + &event("a")), (20 * MS, many + END)];
    let body = "local n, events = 0, llm:events('/chat')
        for event in events do n = n + 1; if n == 1 then brunt.pause(0.1) end end
        brunt.check(nil, { named = events.error == 'oversize', some = n > 90000 and n <= 100002 })";
    let summary = run(&scenario(1, body), stream(acts));
    assert_eq!(summary.failures(Failure::Oversize), 1);
}

#[test]
fn more_messages_than_fit_a_read_are_taken_one_by_one() {
    let body = "local n, events = 0, llm:events('/chat')
        for event in events do n = n + 1 end
        brunt.check(nil, { all = n == 30000, fine = events.ok })";
    let many = event("x").repeat(15_000);
    let acts = vec![(10 * MS, HEAD.to_owned() + &many), (30 * MS, many + &event("[DONE]") + END)];
    let total = run(&scenario(1, body), stream(acts)).total;
    assert_eq!((total.statuses.sorted(), total.messages().count()), (vec![(200, 1)], 30_000), "{:?}", total.failures);
}

#[test]
fn what_nobody_takes_after_the_end_is_no_failure() {
    let script = "brunt.scenario('s', function() for event in llm:events('/chat') do brunt.stop_run('enough') end end)
        :inject { brunt.users(1, '1s') }";
    let many = event("x").repeat(110_000);
    let acts = vec![(10 * MS, HEAD.to_owned() + &event("a")), (40 * MS, many + &event("[DONE]") + END)];
    let total = run(script, stream(acts)).total;
    assert_eq!((total.statuses.sorted(), total.messages().count()), (vec![(200, 1)], 110_001), "{:?}", total.failures);
}

#[test]
fn open_streams_are_bounded() {
    let body = "local all = {}
        local fine, problem = pcall(function() for n = 1, 101 do all[n] = llm:events('/chat') end end)
        brunt.check(nil, { refused = not fine and #all == 100 and tostring(problem):find('100 streams open') ~= nil })
        for _, one in ipairs(all) do one:close() end";
    let total = run(&scenario(1, body), three()).total;
    assert_eq!((total.numbers.get(Counter::Due), total.failures.count(Failure::Closed)), (100, 100));
}

#[test]
fn an_answer_that_is_no_success_has_no_messages_and_a_body() {
    let busy = "HTTP/1.1 503 Busy\r\nContent-Length: 9\r\n\r\ndata: a\n\n".to_owned();
    let body = "local n, events = 0, llm:events('/chat')
        for event in events do n = n + 1 end
        brunt.check(nil, { none = n == 0, busy = events.status == 503 and not events.ok, body = events.body == 'data: a\\n\\n' })";
    let total = run(&scenario(2, body), stream(vec![(MS, busy)])).total;
    assert_eq!((total.statuses.sorted(), total.messages().is_empty()), (vec![(503, 2)], true));
}

#[test]
fn a_timeout_around_a_stream_leaves_it() {
    let body = "local n = 0
        local in_time = brunt.timeout(function()
          for event in llm:events('/chat') do n = n + 1 end
          return true
        end, '40ms')
        brunt.check(nil, { cut = not in_time and n == 2 })";
    let summary = run(&scenario(2, body), three());
    let total = &summary.total;
    assert_eq!((total.statuses.sorted(), total.messages().left(), total.messages().count()), (vec![(200, 2)], 2, 4));
}

#[test]
fn a_run_that_ends_within_streams_accounts_for_them() {
    let script =
        "brunt.scenario('s', function() for event in llm:events('/chat') do end end):inject { brunt.users(3, '45ms') }";
    let total = run(script, three()).total;
    assert_eq!(
        total.numbers.get(Counter::Due),
        total.statuses.total() + total.numbers.get(Counter::Unfinished) + total.failures.total()
    );
    assert!(total.messages().count() >= 6, "{:?}", total.messages());
}

#[test]
fn lines_and_posts_stream_too() {
    let script = scenario(
        1,
        "local n, stream = 0, http:events('/', { json = { stream = true }, messages = 'lines' })
        for line in stream do n = n + line:json().n end
        brunt.check(nil, { sum = n == 3 })",
    );
    let played = play(&script, |request| {
        assert!(request.starts_with("POST / HTTP/1.1\r\n") && !request.contains("event-stream"), "{request}");
        let body = "{\"n\":1}\n{\"n\":2}\n";
        (MS, format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()))
    });
    assert_eq!(played.summary.total.messages().count(), 2);
    assert_eq!(played.summary.breakdown.checks[0].passes, 1);
}

#[test]
fn messages_over_http_2_come_to_their_users() {
    let body = "local seen = {}
        local events = llm:events('/chat', { name = 'chat' })
        for event in events do
          seen[#seen + 1] = event.data
        end
        brunt.check(events, { ['200'] = events.status == 200, ok = events.ok, whole = events.body == '' })
        brunt.check(nil, { seen = table.concat(seen, ' ') == 'a b c d e' })
        brunt.check(llm:get('/'), { ['200 again'] = function(answer) return answer.status == 200 and #answer.body > 50 end })";
    let summary = run_with("http = '2'", &scenario(3, body), Server::new(&[], events));
    assert_eq!(
        (summary.total.statuses.sorted(), summary.total.numbers.get(Counter::ConnectionsMade)),
        (vec![(200, 6)], 1)
    );
    let chat = summary.total.figures.requests.get("chat").unwrap().messages();
    assert_eq!((chat.count(), chat.streams(), chat.first().known.max()), (15, 3, Some(10 * MS)));
}

#[test]
fn a_stream_of_http_2_that_is_left_is_reset_and_its_connection_goes_on() {
    let body = "local events = llm:events('/chat')
        for event in events do break end
        events:close()
        brunt.check(events, { head = function(events) return events.status == 200 and events.headers end })";
    let total = run_with("http = '2'", &scenario(4, body), Server::new(&[], events)).total;
    assert_eq!((total.statuses.sorted(), total.failures.total()), (vec![(200, 4)], 0));
    assert_eq!(
        (total.messages().left(), total.messages().count(), total.numbers.get(Counter::ConnectionsMade)),
        (4, 4, 1)
    );
}

#[test]
fn a_user_reads_several_streams_of_one_connection_in_turn() {
    let body = "local a, b, n = llm:events('/a'), llm:events('/b'), 0
        while true do
          local first, second = a:next(), b:next()
          if not first and not second then break end
          n = n + (first and 1 or 0) + (second and 1 or 0)
        end
        brunt.check(nil, { all = n == 10, ended = a.ok and b.ok })";
    let total =
        run_with("http = '2', connections = 1, pipeline = 10", &scenario(2, body), Server::new(&[], events)).total;
    assert_eq!(
        (total.messages().count(), total.messages().streams(), total.numbers.get(Counter::ConnectionsMade)),
        (20, 4, 1)
    );
}

#[test]
fn users_share_connections_and_another_is_made_once_all_streams_are_taken() {
    const FOUR: &[(u16, u32)] = &[(setting::MAX_CONCURRENT_STREAMS, 4)];
    let script = |users: u32| {
        format!("brunt.scenario('s', function() llm:get('/') end):inject {{ brunt.iterations_each({users}, 3) }}")
    };
    let options = "http = '2', connections = 'shared'";
    for (limit, users, connections) in [(&[][..], 20, 1), (FOUR, 4, 1), (FOUR, 20, 5)] {
        let total = run_with(options, &script(users), Server::new(limit, events)).total;
        assert_eq!((total.statuses.total(), total.failures.total()), (u64::from(users) * 3, 0));
        assert_eq!(total.numbers.get(Counter::ConnectionsMade), connections, "{users} users");
        assert!(total.numbers.get(Counter::HeldBackByStreamLimit) == 0, "another was to be had");
    }
    // Calls that the target does not process are made again, on other connections.
    let leaving = |connection: u64, stream: u32| {
        let mut acts = events(connection, stream);
        if stream == 7 {
            acts.push((20 * MS, Act::Send(goaway(7, ErrorCode::NO_ERROR))));
        }
        acts
    };
    let total = run_with(options, &script(10), Server::new(FOUR, leaving)).total;
    assert_eq!((total.statuses.total(), total.failures.total()), (30, 0));
}

#[test]
fn a_connection_that_leaves_ends_with_the_last_stream_on_it_that_its_user_leaves() {
    let leaving = |connection: u64, stream: u32| {
        let mut acts = events(connection, stream);
        let last = acts.pop().unwrap();
        acts.push((acts[0].0 + MS, Act::Send(goaway(stream, ErrorCode::NO_ERROR))));
        acts.push(last);
        acts
    };
    let body = "local n = 0
        for _ in llm:events('/chat') do n = n + 1; if n == 2 then break end end
        brunt.check(nil, { two = n == 2 })";
    let total = run_with("http = '2'", &scenario(3, body), Server::new(&[], leaving)).total;
    assert_eq!((total.statuses.sorted(), total.failures.total()), (vec![(200, 3)], 0));
    assert_eq!((total.numbers.get(Counter::StreamsLeft), total.numbers.get(Counter::ConnectionsMade)), (3, 3));
}

#[test]
fn connections_without_streams_cannot_be_shared() {
    for (options, way_out) in [
        ("connections = 'shared'", "give http = \"2\", or share so many connections by pool = 10"),
        (
            "http = '2', connections = 'own'",
            "connections must be a number of each user's own, or \"shared\", not 'own'",
        ),
        ("http = '2', connections = 'shared', pool = 2", "give one of the two"),
    ] {
        let script = format!("local llm = brunt.http {{ base = 'http://127.0.0.1', {options} }}");
        let error = plan_of(&script, &[]).unwrap_err();
        assert!(error.contains(way_out), "{error}");
    }
}

#[test]
fn streams_without_an_event_are_told_as_in_a_flood() {
    for (end, told) in [(END.to_owned(), vec![About::NoMessages]), (event("a") + END, vec![])] {
        let script = "local llm = brunt.http { base = 'http://127.0.0.1' };".to_owned()
            + &scenario(20, "for _ in llm:events('/chat') do end");
        let peer = stream(vec![(MS, HEAD.to_owned() + &end)]);
        let summary = play_against(&plan_of(&script, &[]).unwrap(), peer, &StopHandle::default());
        assert_eq!(summary.total.statuses.sorted(), [(200, 20)]);
        assert_eq!(summary.remarks.iter().map(|remark| remark.about).collect::<Vec<_>>(), told);
        let failed = summary.thresholds.iter().filter(|result| !result.held).map(|result| result.condition.to_string());
        let expected: Vec<_> = told.iter().map(|_| "messages>=1".to_owned()).collect();
        assert_eq!(failed.collect::<Vec<_>>(), expected);
    }
}
