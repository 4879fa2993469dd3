//! Requests and answers of a script do not depend on how many are handled at once.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

use std::sync::Arc;

use brunt_plan::content::Content;
use brunt_plan::plan::{Sandbox, Script};
use mlua::Lua;
use proptest::prelude::*;

use super::start::Start;
use super::state;
use super::thread::Thread;
use super::user::ScriptUser;
use brunt_protocol::AnswerParts;
use brunt_protocol::source::{Heartbeat, RequestSource, SourceEnd};

fn begin(code: &str) -> (Lua, ScriptUser) {
    let script = Script { file: "a.lua".to_owned(), content: Content(code.as_bytes().to_vec()), args: Vec::new() };
    let start = Start {
        scheme: "http".to_owned(),
        host: "a".to_owned(),
        port: None,
        path: "/".to_owned(),
        method: "GET".to_owned(),
        headers: Vec::new(),
        body: None,
    };
    let lua = state::begin(&script, &start, Sandbox::Open).unwrap();
    let thread = Arc::new(Thread::new(0, &lua));
    let wrk: mlua::Table = lua.globals().get("wrk").unwrap();
    wrk.set("thread", thread.object(&lua).unwrap()).unwrap();
    wrk.get::<mlua::Function>("init").unwrap().call::<()>(lua.create_table().unwrap()).unwrap();
    let user = ScriptUser::begin(lua.clone(), "a.lua", thread, Heartbeat::default()).unwrap();
    (lua, user)
}

/// Makes requests until there are `most` or the user refuses; `ahead` has the numbers expected each time.
fn requests(user: &mut ScriptUser, most: usize, ahead: &[usize]) -> (Vec<(String, bool)>, Option<SourceEnd>) {
    let mut made = Vec::new();
    for expected in ahead.iter().cycle() {
        user.expect(*expected);
        for _ in 0..(*expected).max(1) {
            if made.len() == most {
                return (made, None);
            }
            match user.request(0) {
                Ok(message) => made.push((String::from_utf8(message.bytes.to_vec()).unwrap(), message.more)),
                Err(refusal) => return (made, Some(refusal)),
            }
        }
        user.expect(0);
    }
    unreachable!("there is something expected")
}

/// The numbers in the paths of requests.
fn numbers(made: &[(String, bool)]) -> Vec<u32> {
    made.iter().map(|(text, _)| text.split(['/', ' ']).nth(2).unwrap().parse().unwrap()).collect()
}

const COUNTER: &str = "n = 0 local function one() n = n + 1 return 'GET /' .. n .. ' HTTP/1.1\\r\\n\\r\\n' end ";

proptest! {
    #[test]
    fn requests_are_the_same_however_many_are_made_ahead(ahead in prop::collection::vec(0_usize..40, 1..6)) {
        let code = format!("{COUNTER} function request() local all = one() for _ = 1, n % 3 do all = all .. one() end return all end");
        let one_by_one = requests(&mut begin(&code).1, 200, &[0]);
        prop_assert_eq!(numbers(&one_by_one.0), (1..=200).collect::<Vec<_>>());
        prop_assert!(one_by_one.0.iter().any(|(_, more)| *more) && one_by_one.0.iter().any(|(_, more)| !*more));
        prop_assert_eq!(requests(&mut begin(&code).1, 200, &ahead), one_by_one);
    }
}

#[test]
fn what_was_made_before_an_error_or_an_end_is_sent() {
    for (fifth, expected) in [
        ("error('no more')", Some("a.lua:2: no more")),
        ("return {}", Some("returned table")),
        ("return 'GET /5 HTTP/1.1\\r\\n'", Some("the request is not complete: it ends at line 2, column 1")),
        ("return 'POST /5 HTTP/1.1\\r\\nContent-Length: 40\\r\\n\\r\\n'", Some("shorter than its Content-Length")),
        ("return one() .. '\\0'", Some("not an HTTP request")),
        ("return one() .. '\\0' .. one()", Some("not an HTTP request")),
        ("wrk.thread:stop() return one()", None),
        ("wrk.thread:stop() return one() .. one()", None),
    ] {
        let code = format!("{COUNTER}\nfunction request() if n == 4 then {fifth} end return one() end");
        for ahead in [0, 3, 5, 16] {
            let (made, refusal) = requests(&mut begin(&code).1, 100, &[ahead]);
            assert_eq!(numbers(&made), [1, 2, 3, 4], "{fifth}, {ahead} ahead");
            match (refusal, expected) {
                (Some(SourceEnd::Done), None) => {}
                (Some(SourceEnd::Failed(reason)), Some(expected)) => assert!(reason.contains(expected), "{reason}"),
                (other, _) => panic!("{fifth}, {ahead} ahead: {other:?}"),
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// An answer: its status, the index of its head, the index of its body.
    Answer(u16, usize, usize),
    /// Calls are made again.
    Settle,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        9 => (prop_oneof![4 => Just(200_u16), 1 => Just(404)], 0..2_usize, 0..3_usize).prop_map(|(s, h, b)| Step::Answer(s, h, b)),
        9 => Just(Step::Answer(200, 0, 0)),
        1 => Just(Step::Settle),
    ]
}

proptest! {
    #[test]
    fn response_sees_every_answer_in_turn(
        steps in prop::collection::vec(step(), 0..120),
        parameters in prop::collection::vec(1_usize..=3, 1..4),
        lasts in 1_u32..50,
    ) {
        let heads = ["HTTP/1.1 200 OK\r\nA: 1\r\nB: x\r\n\r\n".to_owned(), "HTTP/1.1 200 OK\r\nA: 2\r\n\r\n".to_owned()];
        let bodies = [b"one".to_vec(), b"two".to_vec(), vec![b'x'; 70_000]];
        // `response` is exchanged every `lasts` answers; each of these functions has its number of parameters.
        let functions: Vec<String> = parameters.iter().enumerate().map(|(place, count)| {
            let list = ["s", "s, h", "s, h, b"][count - 1];
            format!("all[{}] = function({list}) see(s, {}) end ", place + 1, ["nil, nil", "h, nil", "h, b"][count - 1])
        }).collect();
        let code = format!(
            "local all, seen = {{}}, 0 log = ''
             local function see(s, h, b)
               seen = seen + 1
               log = log .. s .. ':' .. (h and h.A .. tostring(h.B) or '-') .. ':' .. (b and #b or '-') .. ' '
               if seen % {lasts} == 0 then response = all[seen / {lasts} % #all + 1] end
             end
             {} response = all[1]",
            functions.concat()
        );
        let (lua, mut user) = begin(&code);
        let mut expected = String::new();
        let (mut seen, mut now) = (0, 0);
        for step in &steps {
            match *step {
                Step::Settle => prop_assert_eq!(user.settle(), Ok(())),
                Step::Answer(status, head, body) => {
                    let parts = AnswerParts { head: heads[head].as_bytes(), body: &bodies[body] };
                    prop_assert_eq!(user.answered(status, parts), Ok(()));
                    let fields = if parameters[now] > 1 { ["1x", "2nil"][head] } else { "-" };
                    let length = if parameters[now] > 2 { bodies[body].len().to_string() } else { "-".to_owned() };
                    expected.extend([format!("{status}:{fields}:{length} ")]);
                    seen += 1;
                    if seen % lasts == 0 {
                        now = (seen / lasts) as usize % parameters.len();
                    }
                }
            }
        }
        prop_assert_eq!(user.settle(), Ok(()));
        prop_assert_eq!(lua.globals().get::<String>("log").unwrap(), expected);
    }
}

#[test]
fn who_has_stopped_sees_no_more_answers() {
    let (lua, mut user) =
        begin("seen = 0 function response() seen = seen + 1 if seen == 3 then wrk.thread:stop() end end");
    let parts = AnswerParts { head: b"HTTP/1.1 200 OK\r\n\r\n", body: b"" };
    for _ in 0..10 {
        let _ = user.answered(200, parts);
    }
    assert_eq!(user.settle(), Err(SourceEnd::Done));
    assert_eq!(user.answered(200, parts), Ok(()));
    assert_eq!(user.request(0), Err(SourceEnd::Done));
    assert_eq!(lua.globals().get::<u32>("seen").unwrap(), 3);
}
