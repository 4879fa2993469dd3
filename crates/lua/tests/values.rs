//! The functions of `brunt` that give values, as scripts call them: what they give, from which seed, and what their misuse is.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by a panic")]

use brunt_lua::LuaJit;
use brunt_lua::scenario::read;
use brunt_plan::content::Content;
use brunt_plan::plan::{Plan, ProtocolOptions, Sandbox};
use brunt_plan::scenario::File;
use brunt_plan::target::Url;
use brunt_protocol::Registry;
use brunt_protocol::scenario::Value;
use brunt_record::time::Tick;
use brunt_script::{Files, LoadOptions};
use brunt_script::{Library, Operation, Program, Resumption, ScriptError, ScriptHost as _};

fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.register(brunt_http1::Http1);
    registry
}

/// A plan of a script whose one scenario, `s`, does what `inside` says, after `top`.
fn plan(sandbox: Sandbox, seed: u64, top: &str, inside: &str) -> Result<Plan, ScriptError> {
    let text = format!(
        "local brunt = require 'brunt'; {top}\nbrunt.scenario('s', function(vu, given)\n{inside}\nend):inject {{ brunt.users(1, 1) }}"
    );
    let script = File { name: "s.lua".to_owned(), content: Content(text.into_bytes()) };
    let options = LoadOptions { sandbox, ..LoadOptions::default() };
    let loaded = read(script, Files::Plan(Vec::new()), &options, &registry())?;
    let mut plan = Plan::of_calls(Url::parse("http://localhost:1/").unwrap().target, ProtocolOptions::default());
    (plan.scenarios, plan.sandbox, plan.seed) = (Some(loaded.scenarios), sandbox, seed);
    Ok(plan)
}

fn script(plan: &Plan) -> Box<dyn Program> {
    LuaJit.program(plan, plan.scenarios.as_ref().unwrap(), &registry(), brunt_plan::share::Portion::whole(1)).unwrap()
}

fn begun(library: &dyn Library) -> Operation {
    library.begin_iteration(0, Tick::from_ns(1), 1, library.place("s").unwrap())
}

/// What a scenario of this worker ends with when it raises `value`, an expression.
fn value_of(sandbox: Sandbox, seed: u64, worker: u32, value: &str) -> String {
    let plan = plan(sandbox, seed, "", &format!("error('VALUE ' .. tostring({value}) .. ' END', 0)")).unwrap();
    let operation = begun(&*script(&plan).begin(worker).unwrap());
    let Operation::Failed { problem, .. } = operation else { panic!("{value}: {operation:?}") };
    let shown = problem.split_once("VALUE ").and_then(|(_, rest)| rest.split_once(" END"));
    shown.unwrap_or_else(|| panic!("{value}: {problem}")).0.to_owned()
}

fn value(expression: &str) -> String {
    let open = value_of(Sandbox::Open, 7, 0, expression);
    assert_eq!(open, value_of(Sandbox::Closed, 7, 0, expression), "{expression}");
    open
}

/// What the rehearsal finds wrong with a function.
fn rehearsed(inside: &str) -> Option<String> {
    let plan = plan(Sandbox::Open, 1, "local http = brunt.http { base = 'http://localhost:1' }", inside).unwrap();
    script(&plan).rehearse(&["s"]).err().map(|error| error.to_string())
}

#[test]
fn values_are_those_of_their_standards_inside_the_sandbox_and_outside() {
    for (expression, expected) in [
        ("brunt.sha256('abc'):sub(1, 16)", "ba7816bf8f01cfea"),
        ("brunt.md5('abc', 'base64')", "kAFQmDzST7DWlj99KOF/cg=="),
        ("#brunt.sha512('', 'binary') + #brunt.sha384('', 'binary') + #brunt.sha1('', 'binary')", "132"),
        ("brunt.hmac('sha1', 'Jefe', 'what do ya want for nothing?')", "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
        ("brunt.base64('\\251\\255')", "+/8="),
        ("brunt.base64url('\\251\\255')", "-_8"),
        ("brunt.base64_decode(brunt.base64url('a?b>'))", "a?b>"),
        ("brunt.hex('\\0\\255') .. brunt.hex_decode('4A4b')", "00ffJK"),
        ("brunt.url_encode('a b/ä+') .. brunt.url_decode('%2f+%C3%A4')", "a%20b%2F%C3%A4%2B/+ä"),
        ("brunt.json.encode(brunt.json.decode('{\"b\":[],\"a\":null}'))", "{\"a\":null,\"b\":[]}"),
        ("select(2, brunt.json.decode('x'))", "expected value at line 1 column 1"),
        ("(select(2, pcall(brunt.json.encode, print)))", "s.lua:3: brunt.json.encode: a function cannot be JSON"),
        ("brunt.date('%Y-%m-%dT%H:%M:%S.%3fZ', 1440938160.25)", "2015-08-30T12:36:00.250Z"),
        ("brunt.date(nil, 0)", "1970-01-01T00:00:00Z"),
        ("brunt.date('%s %% %a %j %6f', 86399.5)", "86399 % Thu 001 500000"),
        ("math.abs(brunt.now() - os.time()) <= 2 and brunt.date('%s') - os.time() <= 2", "true"),
        (
            "brunt.jwt.sign({ sub = 'ann' }, 'key', { header = { kid = '1' } }):match('^(.*)%.')",
            "eyJhbGciOiJIUzI1NiIsImtpZCI6IjEiLCJ0eXAiOiJKV1QifQ.eyJzdWIiOiJhbm4ifQ",
        ),
        ("brunt.jwt.claims(brunt.jwt.sign({ sub = 'ann' }, 'k')).sub", "ann"),
        ("select(2, brunt.jwt.claims(brunt.jwt.sign({}, 'k', { algorithm = 'HS512' }))).alg", "HS512"),
        ("brunt.random(3, 3)", "3"),
        ("#brunt.sample({ 1, 2, 3 }, 3) .. brunt.random_string(3, 'ä')", "3äää"),
    ] {
        assert_eq!(value(expression), expected, "{expression}");
    }
}

#[test]
fn all_that_is_random_comes_from_the_seed_and_is_each_workers_own() {
    let drawn = "brunt.uuid() .. ' ' .. brunt.random(1, 2 ^ 40) .. ' ' .. brunt.random() .. ' ' .. brunt.random_string(20) \
                 .. ' ' .. table.concat(brunt.sample({ 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h' }, 8))";
    let first = value_of(Sandbox::Open, 7, 0, drawn);
    assert_eq!(first, value_of(Sandbox::Closed, 7, 0, drawn));
    for (seed, worker) in [(7, 1), (8, 0)] {
        let other = value_of(Sandbox::Open, seed, worker, drawn);
        for (one, other) in first.split(' ').zip(other.split(' ')) {
            assert_ne!(one, other);
        }
    }
}

#[test]
fn what_is_drawn_is_within_its_bounds_and_reaches_them() {
    let all = "(function()
        local seen, samples = {}, {}
        for _ = 1, 2000 do
          seen[brunt.random(-1, 1)] = true
          local uuid = brunt.uuid()
          assert(uuid:match('^%x%x%x%x%x%x%x%x%-%x%x%x%x%-4%x%x%x%-[89ab]%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x$'), uuid)
          local three = brunt.sample({ 1, 2, 3 }, 3)
          assert(three[1] + three[2] + three[3] == 6 and three[1] ~= three[2])
          samples[table.concat(three)] = (samples[table.concat(three)] or 0) + 1
          assert(brunt.random_string(9, 'ab'):match('^[ab]+$'))
          assert(#brunt.sample({ 1, 2, 3 }, 0) == 0 and brunt.sample({ 4 }) == 4)
        end
        local orders = 0
        for _, count in pairs(samples) do orders = orders + 1 assert(count > 200, count) end
        return orders .. tostring(seen[-1] and seen[0] and seen[1])
      end)()";
    assert_eq!(value(all), "6true");
}

#[test]
fn misuse_is_found_before_anything_is_sent_with_file_and_line() {
    for (inside, problem) in [
        ("brunt.sha256({})", "s.lua:3: brunt.sha256 takes a text, not a table"),
        ("brunt.sha1('a', 'b64')", "s.lua:3: brunt.sha1: there is no encoding 'b64'; there are hex, base64,"),
        ("brunt.hmac('sha3', 'k', 't')", "s.lua:3: brunt.hmac: there is no algorithm 'sha3'"),
        (
            "brunt.hmac('sha1', nil, 't')",
            "s.lua:3: brunt.hmac takes an algorithm, a key and a text, not 'sha1', nil and a text",
        ),
        ("brunt.hex_decode('abc')", "s.lua:3: brunt.hex_decode: hexadecimal digits come in pairs, and there are 3"),
        ("brunt.base64_decode('!')", "s.lua:3: brunt.base64_decode: it is not base64"),
        ("brunt.url_decode('%4')", "two hexadecimal digits must follow the % at byte 1"),
        ("brunt.random(2, 1)", "s.lua:3: brunt.random takes the smaller number first, not 2 and 1"),
        ("brunt.random(1.5, 'x')", "s.lua:3: brunt.random takes two whole numbers, not 1.5 and 'x'"),
        ("brunt.random_string(-1)", "brunt.random_string takes a length from 0 to 1048576, not -1"),
        ("brunt.random_string(3, '')", "brunt.random_string takes an alphabet"),
        ("brunt.sample({})", "brunt.sample takes a list with something in it"),
        ("brunt.sample({ 1 }, 2)", "brunt.sample draws from 0 to as many as the list has, 1, not 2"),
        ("brunt.date('%Q')", "brunt.date has no '%Q'"),
        ("brunt.date('%')", "brunt.date has no '%'"),
        ("brunt.date('%Y', 'now')", "brunt.date takes a time in seconds since 1970, up to the year 9999, not 'now'"),
        ("brunt.jwt.sign('ann', 'k')", "brunt.jwt.sign takes claims, a key and"),
        ("brunt.jwt.sign({ 1 }, 'k')", "claims are a table by their names, not a list"),
        ("brunt.jwt.sign({}, 'k', { algorithm = 'HS1' })", "there is no algorithm 'HS1'"),
        ("brunt.jwt.sign({}, 'k', { algorithm = 'RS256' })", "RS256 takes a private key in PEM"),
        ("brunt.jwt.sign({}, 'k', { algoritm = 'RS256' })", "did you mean 'algorithm'?"),
        (
            "brunt.jwt.sign({ x = http:get('/'):json().id }, 'k', { algorithm = 'none' })",
            "there is no algorithm 'none'",
        ),
        ("brunt.jwt.claims('a.b')", "it is not a token: a token has three parts"),
        ("brunt.json.decode({})", "brunt.json.decode takes a text, not a table"),
        ("http:get('/', { digest = { 'u' } })", "digest must be { user, password }"),
        ("http:get('/', { aws = { key = 'k', secret = 's', region = 'r' } })", "aws: service must be a text, not nil"),
        ("http:get('/', { aws = { kye = 'k' } })", "did you mean 'key'?"),
        ("http:events('/', { mesages = 'sse' })", "did you mean 'messages'?"),
        ("http:events('/', { messages = 'json' })", "messages must be \"sse\", \"lines\" or \"chunks\""),
        ("for event in http:events('/') do http:get('/', { nmae = 'x' }) end", "did you mean 'name'?"),
        (
            "for event in http:events('/') do local n = event:json().n end http:get('/', { nmae = 'x' })",
            "did you mean 'name'?",
        ),
        (
            "http:get('/', { oauth = { token_url = 'idp', client = 'c', secret = 's' } })",
            "token_url must begin with http://",
        ),
        ("http:get('/', { basic = { 'a', 'b' }, bearer = 'c' })", "basic and bearer both authorize: give one of them"),
    ] {
        let found = rehearsed(inside).unwrap_or_else(|| panic!("{inside}: nothing was found"));
        assert!(found.contains(problem), "{inside}: {found}");
    }
}

#[test]
fn what_follows_from_made_up_answers_is_not_held_against_a_script() {
    for inside in [
        "for event in http:events('/') do brunt.hex_decode(event.data .. 'a') end",
        "for event in http:events('/') do event:json().x.y() end",
        "brunt.hex_decode(http:get('/').body .. 'a')",
        "brunt.hex_decode(http:get('/'):json().id)",
        "brunt.sha256(http:get('/').headers.etag)",
        "brunt.jwt.claims(http:get('/'):json().token).sub.x()",
        "brunt.jwt.sign({ sub = http:get('/'):json().id }, 'k')",
        "brunt.json.decode(http:get('/').body).x.y()",
        "brunt.sample(http:get('/'):json().list, 3)",
        "brunt.random(1, http:get('/'):json().most)",
        "brunt.hmac('sha1', given.key, 't')",
        "http:get('/', { oauth = { token_url = given.url, client = given.x, secret = given.y } })",
        "http:get('/', { digest = { given.user, given.password }, name = 'x' })",
    ] {
        // That the rest was gone through is seen by the mistake behind it.
        let found = rehearsed(&format!("{inside}\nhttp:get('/', {{ nmae = 1 }})"));
        assert!(found.is_some_and(|found| found.contains("'nmae'")), "{inside}: {:?}", rehearsed(inside));
        assert_eq!(rehearsed(inside), None, "{inside}");
    }
}

/// A plan carries what a query found, and its columns are known.
#[test]
fn a_misspelt_column_of_a_query_is_found_before_anything_is_sent() {
    let text = "local brunt = require 'brunt'; local rows = brunt.sqlite('u.db', 'SELECT id, name FROM u'):circular()
       brunt.scenario('s', function()
         local row = rows:next()
         assert(row.id == 1 and row.name == brunt.null)
         return row.nmae
       end):inject { brunt.users(1, 1) }";
    let files = vec![
        File { name: "s.lua".to_owned(), content: Content(text.into()) },
        File {
            name: "u.db: SELECT id, name FROM u".to_owned(),
            content: Content(b"{\"id\":1,\"name\":null}\n".to_vec()),
        },
    ];
    let loaded =
        read(files[0].clone(), Files::Plan(files[1..].to_vec()), &LoadOptions::default(), &registry()).unwrap();
    let mut plan = Plan::of_calls(Url::parse("http://localhost:1/").unwrap().target, ProtocolOptions::default());
    plan.scenarios = Some(brunt_plan::scenario::Scenarios { files, ..loaded.scenarios });
    let found = script(&plan).rehearse(&["s"]).unwrap_err().to_string();
    assert!(found.contains("s.lua:5: u.db has no column 'nmae'; it has id, name"), "{found}");
}

/// What a server says wrong ends an iteration, and not the run.
#[test]
fn what_a_server_said_ends_the_iteration_alone() {
    let plan = plan(Sandbox::Open, 1, "", "local said = 'abc'\nbrunt.hex_decode(said)").unwrap();
    let operation = begun(&*script(&plan).begin(0).unwrap());
    let Operation::Failed { problem, wrong: false, .. } = operation else { panic!("{operation:?}") };
    assert!(problem.starts_with("s.lua:4: brunt.hex_decode: "), "{problem}");
    let wrong = self::plan(Sandbox::Open, 1, "brunt.hex_decode('a')", "").unwrap_err().to_string();
    assert!(wrong.contains("s.lua:1: brunt.hex_decode: "), "{wrong}");
}

/// A user of a script with a client, on its way.
struct User {
    library: Box<dyn Library>,
    operation: Operation,
}

impl User {
    fn new(top: &str, inside: &str) -> Self {
        let plan = plan(Sandbox::Closed, 7, top, inside).unwrap();
        let library = script(&plan).begin(0).unwrap();
        let mut user = Self { operation: begun(&*library), library };
        user.label();
        user
    }

    /// Names of calls are asked for before them.
    fn label(&mut self) {
        while let Operation::Label(_) = &self.operation {
            self.operation = self.library.resume(0, Tick::from_ns(2), Resumption::Number(1)).0;
        }
    }

    fn go_on(&mut self, with: Resumption<'_>) {
        self.operation = self.library.resume(0, Tick::from_ns(2_000_000_000), with).0;
        self.label();
    }

    fn answer(&mut self, status: u16) {
        let ok = status < 400;
        self.go_on(Resumption::Answered { ticket: 1.0, status, ok, flags: 0, goes_on: false });
    }

    /// Gives what is asked of an answer: its body, or header fields.
    fn give(&mut self, value: Value<'_>) {
        assert!(matches!(self.operation, Operation::Read { .. }), "{:?}", self.operation);
        self.go_on(Resumption::Read(value));
    }

    /// The values of the call that it makes: method, URL, header fields, cookies, body.
    #[track_caller]
    fn call(&self) -> &[Value<'static>] {
        let Operation::Call(wanted) = &self.operation else { panic!("{:?}", self.operation) };
        &wanted.values
    }

    #[track_caller]
    fn authorization(&self) -> String {
        self.call()[2].get("Authorization").as_str().unwrap_or_else(|| panic!("{:?}", self.call())).to_owned()
    }
}

/// AWS's own test vectors (aws-sig-v4-test-suite).
#[test]
fn requests_are_signed_as_aws_signs_them() {
    let top =
        "local aws = { key = 'AKIDEXAMPLE', secret = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY', region = 'us-east-1',
         service = 'service' }
       local http = brunt.http { base = 'https://example.amazonaws.com', aws = aws }
       local at = { ['X-Amz-Date'] = '20150830T123600Z' }
       local function plus(more) for name, value in pairs(at) do more[name] = value end return more end";
    for (call, names, signature) in [
        (
            "http:get('/', { headers = at })",
            "host;x-amz-date",
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
        ),
        (
            "http:get('/?Param2=value2&Param1=value1', { headers = at })",
            "host;x-amz-date",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
        (
            "http:post('/', { headers = at })",
            "host;x-amz-date",
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
        ),
        (
            "http:post('/', { headers = at, form = { Param1 = 'value1' } })",
            "content-type;host;x-amz-date",
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
        ),
        (
            "http:get('/', { headers = plus { ['My-Header1'] = ' value1', ['My-Header2'] = ' \"a   b   c\"' } })",
            "host;my-header1;my-header2;x-amz-date",
            "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
        ),
    ] {
        let user = User::new(top, call);
        let expected = format!(
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders={names}, \
             Signature={signature}"
        );
        assert_eq!(user.authorization(), expected, "{call}");
    }
    let user = User::new(
        "local http = brunt.http { base = 'https://b.s3.amazonaws.com' }",
        "http:put('/a', { body = 'x', aws = { key = 'k', secret = 's', session_token = 't', region = 'r', service = 's3' } })",
    );
    let headers = &user.call()[2];
    assert_eq!(headers.get("X-Amz-Security-Token").as_str(), Some("t"));
    let of_body = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
    assert_eq!(headers.get("X-Amz-Content-Sha256").as_str(), Some(of_body));
    assert!(user.authorization().contains("SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token, "));
}

fn challenge(field: &'static str) -> Value<'static> {
    Value::Table(vec![(Value::text("www-authenticate"), Value::text(field))])
}

/// The example of RFC 7616 §3.9.1, and the nonce used again.
#[test]
fn a_challenge_is_answered_as_its_standard_does_and_its_nonce_kept() {
    let top = "brunt.random_string = function() return 'f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ' end
       local http = brunt.http { base = 'http://www.example.org', digest = { 'Mufasa', 'Circle of Life' } }";
    let inside = "http:get('/dir/index.html') http:get('/dir/index.html')";
    let both = "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm=SHA-256, \
        nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\", \
        Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm=MD5, nonce=\"7ypf/xlj\"";
    let md5 = "Basic realm=\"x\", Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm=MD5, \
        nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\"";
    for (field, response) in [
        (both, "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        (md5, "8ca523f5e9506fed4657c9700eebdbec"),
    ] {
        let mut user = User::new(top, inside);
        assert!(user.call()[2].get("Authorization").is_nil(), "the first is sent to be challenged");
        user.answer(401);
        user.give(challenge(field));
        let sent = user.authorization();
        for part in [
            "Digest username=\"Mufasa\", realm=\"http-auth@example.org\", ",
            "uri=\"/dir/index.html\", ",
            &format!("response=\"{response}\""),
            "opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\"",
            "qop=auth, nc=00000001, cnonce=\"f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ\"",
        ] {
            assert!(sent.contains(part), "{part} in {sent}");
        }
        user.answer(200);
        let again = user.authorization();
        assert!(again.contains("nc=00000002") && !again.contains(response), "{again}");
        // A nonce that is no longer taken is replaced; one that is refused again is not tried for ever.
        user.answer(401);
        user.give(challenge("Digest realm=\"r\", nonce=\"fresh\", stale=true, qop=\"auth\""));
        assert!(user.authorization().contains("nonce=\"fresh\"") && user.authorization().contains("nc=00000001"));
        user.answer(401);
        assert!(matches!(user.operation, Operation::Iterated { .. }), "{:?}", user.operation);
    }
}

#[test]
fn a_token_is_fetched_once_and_sent_until_it_is_refused() {
    let top = "local http = brunt.http { base = 'http://shop', oauth = { token_url = 'http://idp/token', client = 'me:', \
         secret = 's', scope = 'a b' } }";
    let mut user = User::new(top, "http:get('/a') http:get('/b') http:get('/c')");
    let fetch = user.call();
    assert_eq!((fetch[0].as_str(), fetch[1].as_str()), (Some("POST"), Some("http://idp/token")));
    assert_eq!(fetch[4].as_str(), Some("grant_type=client_credentials&scope=a%20b"));
    assert_eq!(user.authorization(), "Basic bWUlM0E6cw==");
    user.answer(200);
    user.give(Value::text("{\"access_token\":\"t1\",\"expires_in\":3600}"));
    for path in ["/a", "/b"] {
        assert_eq!((user.call()[1].as_str(), user.authorization().as_str()), (Some(path), "Bearer t1"));
        user.answer(200);
    }
    // Refused before its time: fetched anew, once.
    user.answer(401);
    assert_eq!(user.call()[1].as_str(), Some("http://idp/token"));
    user.answer(200);
    user.give(Value::text("{\"access_token\":\"t2\",\"expires_in\":3600}"));
    assert_eq!((user.call()[1].as_str(), user.authorization().as_str()), (Some("/c"), "Bearer t2"));
    user.answer(401);
    assert!(matches!(user.operation, Operation::Iterated { .. }), "{:?}", user.operation);
    let mut user = User::new(top, "http:get('/a')");
    user.answer(400);
    user.give(Value::text("{\"error\":\"invalid_client\",\"secret\":\"s\"}"));
    let Operation::Failed { problem, wrong: false, .. } = &user.operation else { panic!("{:?}", user.operation) };
    assert!(problem.contains("s.lua:3: oauth: the token's server answered 400: invalid_client"), "{problem}");
}
