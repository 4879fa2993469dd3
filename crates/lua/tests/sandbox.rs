//! Scripts that try to leave the sandbox, each in every state in which a script runs: scenarios that are loaded, that are
//! rehearsed and that users go through; wrk's scripts in the main state and in a worker's.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by a panic")]

use std::path::Path;

use brunt_lua::LuaJit;
use brunt_lua::scenario::{load, read};
use brunt_plan::content::Content;
use brunt_plan::plan::{Plan, ProtocolOptions, Sandbox, Script};
use brunt_plan::scenario::File;
use brunt_plan::stop::StopHandle;
use brunt_plan::target::Url;
use brunt_protocol::Registry;
use brunt_record::time::Tick;
use brunt_script::{Files, LoadOptions};
use brunt_script::{FloodPlace, Operation, Program, ScriptError, ScriptHost as _};

/// What must be true in the sandbox: expressions of Lua.
const CLOSED: [&str; 40] = [
    // What reaches files, programs and the environment is not there.
    "io == nil",
    "ffi == nil",
    "debug == nil",
    "os.execute == nil and os.remove == nil and os.rename == nil and os.exit == nil",
    "os.getenv == nil and os.tmpname == nil and os.setlocale == nil",
    "loadfile == nil and dofile == nil and module == nil",
    "getfenv == nil and setfenv == nil and newproxy == nil",
    "package.cpath == nil and package.path == nil and package.loadlib == nil",
    "package.loaders == nil and package.preload == nil and package.searchers == nil and package.searchpath == nil",
    "jit.util == nil and jit.attach == nil and jit.opt == nil and jit.profile == nil",
    "string.dump == nil and string.buffer == nil",
    // Nor can it be required.
    "not pcall(require, 'ffi') and not pcall(require, 'io') and not pcall(require, 'debug')",
    "not pcall(require, 'jit.util') and not pcall(require, 'jit.opt') and not pcall(require, 'jit.profile')",
    "not pcall(require, 'jit.bc') and not pcall(require, 'jit.dump') and not pcall(require, 'jit.v')",
    // Buffers give pointers into memory.
    "not pcall(require, 'string.buffer') and not pcall(require, 'thread.exdata')",
    "not pcall(require, '../secret') and not pcall(require, '..secret') and not pcall(require, '/etc/hostname')",
    "not pcall(require, './secret') and not pcall(require, '') and not pcall(require, nil) and not pcall(require, {})",
    "require('os') == os and require('os').execute == nil",
    "require('package') == package and require('_G') == _G and require('jit') == jit",
    "package.loaded.io == nil and package.loaded.ffi == nil and package.loaded.debug == nil",
    "package.loaded.package.loaded == package.loaded",
    "(function() for name, one in pairs(package.loaded) do if one == nil or name == 'ffi' then return false end end return true end)()",
    // By the metatable of strings.
    "getmetatable('').__index == string and ('').dump == nil and ('').buffer == nil",
    "not pcall(function() return ('x'):dump() end)",
    // By another environment.
    "_G._G == _G and rawget(_G, 'io') == nil",
    "load('return _G')() == _G and loadstring('return io')() == nil",
    "load('return io', 'c', 't', { io = 1 })() == 1",
    "select('#', load('return ...', 'c', 't')()) == 0",
    // Bytecode, whole or by pieces, whatever is said of it.
    "load('\\27LJ\\2\\0') == nil and loadstring('\\27LJ\\2\\0') == nil",
    "load('\\27LJ\\2\\0', 'c', 'b') == nil and load('\\27LJ\\2\\0', 'c', 'bt') == nil",
    "(function() local given = false return load(function() if not given then given = true return '\\27LJ\\2\\0' end end) end)() == nil",
    "not pcall(loadstring, function() return 'return 1' end) and not pcall(loadstring, nil)",
    // By coroutines, which have the same globals.
    "coroutine.wrap(function() return io == nil and debug == nil and package.loadlib == nil end)()",
    "select(2, coroutine.resume(coroutine.create(function() return rawget(_G, 'ffi') end))) == nil",
    // By errors, and what handles them.
    "type(select(2, pcall(error))) == 'nil' and type(select(2, xpcall(function() error('x', 0) end, function(e) return e end))) == 'string'",
    // By numbers of the FFI, which need no `require`.
    "getmetatable(1LL) == 'ffi' and not pcall(function() return (1LL).x end)",
    "not pcall(function() return (1LL)[0] end) and not pcall(function() local n = 1LL n[0] = 1 end)",
    // More memory than there is.
    "not pcall(string.rep, 'x', 2147483647)",
    // Metatables of our own are no way in, either.
    "getmetatable(print) == nil and getmetatable(_G) == nil",
    "(function() for _, one in pairs(_G) do if one == io and io ~= nil then return false end end return true end)()",
];

/// What must be true of what our own code gives to scripts.
const OURS: [&str; 3] = [
    // Every function and table that can be reached from the globals: none is one that was taken away.
    "reach(_G) == true",
    "pcall(function() local gsub, find = string.gsub, string.find string.gsub = nil string.find = nil \
     pcall(require, 'no.module') string.gsub, string.find = gsub, find end)",
    "_G.io == nil and _G.debug == nil",
];

/// Goes through everything that can be reached by keys, values and metatables.
const REACH: &str = "
function reach(from)
  local seen, waiting = {}, { from, getmetatable('') }
  local taken = { execute = true, getenv = true, popen = true, loadlib = true, sethook = true, getinfo = true,
    getupvalue = true, setupvalue = true, getregistry = true, getlocal = true, cdef = true, dump = true, tmpname = true,
    setfenv = true, getfenv = true, traceback = true, newproxy = true, loadfile = true, dofile = true, withhold = true }
  while #waiting > 0 do
    local one = table.remove(waiting)
    if type(one) == 'table' and not seen[one] then
      seen[one] = true
      for key, value in next, one do
        if taken[key] and value ~= true then return key end
        waiting[#waiting + 1], waiting[#waiting + 2] = key, value
      end
      waiting[#waiting + 1] = getmetatable(one)
    end
  end
  return true
end
";

fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.register(brunt_http1::Http1);
    registry.register(brunt_tcp::Tcp);
    registry.register(brunt_websocket::WebSocket);
    registry.register(brunt_grpc::Grpc);
    registry.register(brunt_thrift::Thrift);
    registry
}

/// Lines that fail if one of the expressions is not true.
fn attempts() -> String {
    let line = |attempt: &&str| format!("if not ({attempt}) then error([==[escaped: {attempt}]==], 0) end\n");
    format!("{REACH}\n{}", CLOSED.iter().chain(&OURS).map(line).collect::<String>())
}

fn file(name: &str, content: &str) -> File {
    File { name: name.to_owned(), content: Content(content.as_bytes().to_vec()) }
}

fn scenario(sandbox: Sandbox, script: &str, files: Vec<File>) -> Result<Plan, ScriptError> {
    let options = LoadOptions { sandbox, ..LoadOptions::default() };
    let loaded = read(file("s.lua", script), Files::Plan(files.clone()), &options, &registry())?;
    let mut plan = Plan::of_calls(loaded.target.unwrap(), ProtocolOptions::default());
    let mut scenarios = loaded.scenarios;
    scenarios.files.extend(files);
    plan.scenarios = Some(scenarios);
    plan.sandbox = sandbox;
    Ok(plan)
}

const HEAD: &str = "local brunt = require('brunt')\nlocal shop = brunt.http{ base = 'http://127.0.0.1:1' }\n";

/// A scenario whose function does `inside`, behind `top`.
fn with(top: &str, inside: &str) -> String {
    format!(
        "{HEAD}{top}\nbrunt.scenario('s', function()\n{inside}\nend):inject{{ brunt.iterations_each(1, 1) }}\n\
         assert(type(brunt.env('NONE', 'x')) == 'string')"
    )
}

fn program(plan: &Plan) -> Box<dyn Program> {
    let scenarios = plan.scenarios.as_ref().unwrap();
    LuaJit.program(plan, scenarios, &registry(), brunt_plan::share::Portion::whole(1)).unwrap()
}

/// What comes of the first step of a user.
fn first_step(plan: &Plan) -> Operation {
    let script = program(plan);
    let library = script.begin(0).unwrap();
    library.begin_iteration(0, Tick::EPOCH, 1, library.place("s").unwrap())
}

fn wrk(sandbox: Sandbox, name: &str, script: &str) -> Result<(), ScriptError> {
    let url = Url::parse("http://127.0.0.1:1/").unwrap().target;
    let mut plan = Plan::of_calls(url, ProtocolOptions::new("{}".parse().unwrap(), "{}".parse().unwrap()));
    plan.script =
        Some(Script { file: name.to_owned(), content: Content(script.as_bytes().to_vec()), args: Vec::new() });
    plan.sandbox = sandbox;
    let registry = registry();
    let prepared = registry.named("http").unwrap().0.prepare(&plan).unwrap();
    let script = LuaJit.flood(&plan, &*prepared)?.unwrap();
    let place = FloodPlace { addresses: Vec::new(), host: ("127.0.0.1".to_owned(), 1), workers: 2 };
    let mut begun = script.begin(&place, &StopHandle::default())?;
    for worker in &mut begun.workers {
        worker.user.request(0).map_err(|refusal| ScriptError::failed("request()", &format!("{refusal:?}")))?;
    }
    Ok(())
}

#[test]
fn a_scenario_stays_inside_while_it_is_loaded_and_while_users_go_through_it() {
    let attempts = attempts();
    let plan = scenario(Sandbox::Closed, &with(&attempts, ""), Vec::new()).unwrap();
    assert!(matches!(first_step(&plan), Operation::Iterated { .. }), "{:?}", first_step(&plan));
    let plan = scenario(Sandbox::Closed, &with("", &attempts), Vec::new()).unwrap();
    assert!(matches!(first_step(&plan), Operation::Iterated { .. }), "{:?}", first_step(&plan));
}

#[test]
fn the_attempts_are_such_as_succeed_outside() {
    let found = |attempt: &str| {
        let script = with(&format!("{REACH}\nif {attempt} then error('held', 0) end"), "");
        scenario(Sandbox::Open, &script, Vec::new()).is_ok()
    };
    let open = CLOSED.iter().filter(|attempt| found(attempt)).count();
    assert!(open >= 20, "{open} of {} attempts find something in an open state", CLOSED.len());
    assert!(found("reach(_G) == true"));
}

#[test]
fn a_rehearsal_stays_inside() {
    let rehearse = |script: &str| {
        let plan = scenario(Sandbox::Closed, script, Vec::new()).unwrap();
        let script = program(&plan);
        script.rehearse(&["s"]).map(drop)
    };
    // What is certainly wrong is what a rehearsal tells of.
    let wrong = "brunt.pause('1 fortnight')";
    rehearse(&with("", &format!("{}\n", attempts()))).unwrap();
    let told =
        rehearse(&with("", &format!("{REACH} if reach(_G) == true and io == nil then {wrong} end"))).unwrap_err();
    assert!(told.to_string().contains("fortnight"), "{told}");
    // It ends, and changes nothing, as outside.
    rehearse(&with("", "while true do end")).unwrap();
    rehearse(&with("", "while true do pcall(function() while true do end end) end")).unwrap();
}

#[test]
fn what_our_own_code_calls_cannot_be_made_to_hand_anything_out() {
    // The library and the dialects call these; each is exchanged for one that looks through what it is given.
    let names = [
        "ipairs",
        "pairs",
        "next",
        "setmetatable",
        "getmetatable",
        "rawget",
        "rawset",
        "unpack",
        "tostring",
        "type",
        "error",
        "select",
        "require",
        "pcall",
    ];
    let spies: String = names
        .iter()
        .map(|name| format!("do local real = {name} {name} = function(...) look(...) return real(...) end end\n"))
        .chain(["insert", "sort", "concat", "remove"].iter().map(|name| {
            format!("do local real = table.{name} table.{name} = function(...) look(...) return real(...) end end\n")
        }))
        .collect();
    let look = "
        local type, select, next, rawget = type, select, next, rawget
        local functions = { [print] = true }
        function look(...)
          for place = 1, select('#', ...) do
            local one = select(place, ...)
            if type(one) == 'table' then
              for _, name in next, { 'execute', 'popen', 'getinfo', 'sethook', 'cdef', 'loadlib', 'getenv', 'operations', 'withhold' } do
                if rawget(one, name) then leaked = name end
              end
            end
          end
        end";
    let inside = format!(
        "{look}\n{spies}
        brunt.check({{}}, {{ a = true }})
        pcall(brunt.group, 'g', function() end)
        pcall(brunt.pause, 'x')
        pcall(shop.get, shop, '/', {{ headers = {{ a = 'b' }}, form = {{ c = 'd' }}, nothing = 1 }})
        if leaked then error('leaked ' .. leaked, 0) end"
    );
    let plan = scenario(Sandbox::Closed, &with("", &inside), Vec::new()).unwrap();
    let step = first_step(&plan);
    assert!(!matches!(&step, Operation::Failed { problem, .. } if problem.contains("leaked")), "{step:?}");
}

#[test]
fn wrks_scripts_stay_inside_in_every_state() {
    let attempts = attempts();
    for script in [
        attempts.clone(),
        format!("function setup(thread) {attempts} end"),
        format!("function init(args) {attempts} end"),
        format!("function request() {attempts} return wrk.format() end"),
    ] {
        wrk(Sandbox::Closed, "s.lua", &script).unwrap_or_else(|error| panic!("{error}\n{script}"));
        wrk(Sandbox::Directory, "s.lua", &script).unwrap_or_else(|error| panic!("{error}\n{script}"));
    }
    let error = wrk(Sandbox::Open, "s.lua", &attempts).unwrap_err().to_string();
    assert!(error.contains("escaped: io == nil"), "{error}");
}

#[test]
fn what_scripts_need_is_there() {
    let needed = "
        assert(require('wrk') == wrk and bit.bxor(1, 2) == 3 and jit.version and os.time() > 0 and os.date('%Y') and os.clock())
        assert(require('table.new')(1, 1) and require('table.clear'))
        assert(load('return 1 + 1')() == 2 and loadstring('return ...', '=x')(3) == 3)
        assert(select(2, load('x = = 1', '=mine')):find('mine:1'))
        jit.off() jit.on()
        local seen = 0
        function request() seen = seen + 1 return wrk.format('GET', '/' .. seen) end
        function response(status, headers, body) end
        function delay() return 0 end";
    wrk(Sandbox::Closed, "s.lua", needed).unwrap();
    let top = "local one = require('lib.one') assert(one.two == 2 and require('lib.one') == one)\n\
               for _, row in ipairs({ brunt.lines('rows.txt'):circular() }) do assert(row) end";
    let files = vec![file("lib/one.lua", "return { two = 2 }"), file("rows.txt", "a\nb\n")];
    scenario(Sandbox::Closed, &with(top, ""), files).unwrap();
}

#[test]
fn bytecode_is_refused_as_a_script_and_as_a_module() {
    let bytecode = "\u{1b}LJ\u{2}\0";
    for sandbox in [Sandbox::Closed, Sandbox::Directory] {
        let error = wrk(sandbox, "s.lua", bytecode).unwrap_err().to_string();
        assert!(error.contains("binary chunk"), "{error}");
    }
    assert!(scenario(Sandbox::Closed, bytecode, Vec::new()).is_err());
    let error = scenario(Sandbox::Closed, "require('m')", vec![file("m.lua", bytecode)]).unwrap_err().to_string();
    assert!(error.contains("bytecode") || error.contains("mode") || error.contains("binary"), "{error}");
}

/// A directory that goes when the test ends, with a script's own in it, and beside that a file that is not the script's.
struct Place(std::path::PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("brunt-sandbox-{name}-{}", std::process::id()));
        std::fs::create_dir_all(path.join("own/sub")).unwrap();
        for (file, content) in [
            ("secret.lua", "return 'secret'"),
            ("secret.txt", "secret\n"),
            ("own/mine.lua", "return 'mine'"),
            ("own/sub/mine.lua", "return 'below'"),
            ("own/rows.txt", "a\n"),
        ] {
            std::fs::write(path.join(file), content).unwrap();
        }
        #[cfg(unix)]
        for name in ["secret.lua", "secret.txt"] {
            std::os::unix::fs::symlink(path.join(name), path.join("own").join(format!("link-{name}"))).unwrap();
        }
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_script_beside_its_files_loads_those_and_no_others() {
    let place = Place::new("beside");
    let script = place.file("own/s.lua");
    let inside = "assert(require('mine') == 'mine' and require('sub.mine') == 'below')
        for _, name in ipairs{ '..secret', '../secret', 'link-secret', 'sub/../../secret' } do
          if pcall(require, name) then error('escaped: ' .. name, 0) end
        end";
    wrk(Sandbox::Directory, &script, inside).unwrap();
    // In a plan the name of the file is whatever somebody has written.
    let error = wrk(Sandbox::Closed, &script, "require('mine')").unwrap_err().to_string();
    assert!(error.contains("is not in the sandbox"), "{error}");
}

#[test]
fn scenarios_read_files_of_their_own_directory_alone() {
    let place = Place::new("files");
    let script = place.file("own/s.lua");
    let secret = place.file("secret.txt");
    let outside = |name: &str| {
        format!(
            "assert(not pcall(brunt.lines, '{name}'), 'escaped: {name}')
             assert(not pcall(brunt.lines, '{name}', {{ stream = true }}), 'streamed: {name}')
             assert(select(2, pcall(brunt.sqlite, '{name}', 'SELECT 1')).text:find('its own directory alone'), 'opened: {name}')\n"
        )
    };
    let names = ["../secret.txt", secret.as_str(), "link-secret.txt", "sub/../../secret.txt", "/etc/passwd"];
    let attempts: String = names.into_iter().map(outside).collect();
    let top = format!(
        "assert(brunt.lines('rows.txt'):length() == 1 and require('mine') == 'mine')
         assert(brunt.lines('rows.txt', {{ stream = true }}):length() == 1)
         assert(not pcall(brunt.redis_list, {{ address = '127.0.0.1:1', key = 'k' }}))\n{attempts}"
    );
    std::fs::write(&script, with(&top, "")).unwrap();
    let read = |sandbox| load(Path::new(&script), &LoadOptions { sandbox, ..LoadOptions::default() }, &registry());
    read(Sandbox::Closed).unwrap();
    let error = read(Sandbox::Open).unwrap_err().to_string();
    assert!(error.contains("escaped: ../secret.txt"), "{error}");
    std::fs::write(&script, with("brunt.lines('../secret.txt')", "")).unwrap();
    let error = read(Sandbox::Closed).unwrap_err().to_string();
    assert!(error.contains("reads files of its own directory alone"), "{error}");
}
