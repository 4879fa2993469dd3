-- Rehearsal: running a scenario once, before any load, with made-up answers, to find misspellings: options, units,
-- columns, arguments that do not fit an IDL. Nothing is sent, nothing waits, and nothing outside is changed. Other
-- errors mean nothing, since the answers were not real.

local host, brunt, core, shared = ...

local operations = host.operations
-- Functions that are gone once the sandbox has closed.
local sethook, getinfo, compile_nothing, stdin = debug.sethook, debug.getinfo, jit.off, io.stdin

-- The placeholder for every value that a server, or setup, would have given.
local anything = {}
-- Whether a made-up value was turned into one that does not show it, such as a text.
local hidden = false
-- Whether nothing was made up so far: what fails then fails whatever servers answer.
local pristine = true
local function same()
  pristine = false
  return anything
end
setmetatable(anything, {
  __index = same,
  __call = same,
  __add = same,
  __sub = same,
  __mul = same,
  __div = same,
  __mod = same,
  __unm = same,
  __tostring = function()
    hidden, pristine = true, false
    return "anything"
  end,
  __concat = function(one, other)
    return tostring(one) .. tostring(other)
  end,
  __len = function()
    hidden, pristine = true, false
    return 1
  end,
})

-- The deepest tables that are searched for made-up values.
local MOST_DEPTH = 20

-- Whether a value contains made-up parts, or is nested too deeply to be searched.
local function is_made_up(value, depth)
  if type(value) ~= "table" then
    return false
  elseif value == anything or depth > MOST_DEPTH then
    return true
  end
  for key, one in next, value do
    if is_made_up(key, depth + 1) or is_made_up(one, depth + 1) then
      return true
    end
  end
  return false
end

-- The most instructions, in thousands, and the most waits of a rehearsed function.
local MOST_THOUSANDS, MOST_WAITS = 1000, 1000

-- The calls, groups and checks on the way, each once.
local met, known = {}, {}
-- The most of them: scripts may make up names without end.
local MOST_MET = 1000
-- The names by which calls are counted, by their numbers; and the clients of prepared calls, by the calls' numbers.
local labels, prepared = {}, {}

local function meet(kind, name, client, tags)
  local user = core.home("a rehearsal")
  local key = table.concat({ kind, user.vu.scenario, name, table.concat(tags or {}, ",") }, "\0")
  if known[key] or #met >= MOST_MET then
    return
  end
  known[key] = true
  met[#met + 1] = {
    kind = kind, name = name, scenario = user.vu.scenario, tags = tags or {}, base = client and host.base(client) or nil,
  }
end

local function meet_call(client, number)
  local label = labels[number]
  if label then
    meet("call", label.name, client, label.tags)
  end
end

-- The values with which each operation is resumed; any other operation ends the rehearsal.
local started = 0
local function answered()
  pristine = false
  return 0, 200, true, 0
end
-- Checks that a protocol takes a call whose values are all the script's own.
local function called(client, label, _, ...)
  meet_call(client, label)
  if hidden or is_made_up({ ... }, 0) then
    return answered()
  end
  local problem, status = host.examine(client, ...)
  if problem then
    return nil, problem, true
  end
  pristine = false
  return 0, status, true, 0
end
local function nothing() end
-- The parts of answers that are tables, with the fields that they always have.
local tables = {
  headers = function() return {} end,
  cookies = function() return {} end,
  timings = function() return core.name_unknown({ response = 0, service = 0, first_byte = 0 }, "timings") end,
  sizes = function() return core.name_unknown({ received = 0, body = 0, head = 0 }, "sizes") end,
}
-- Every second message is the end of its stream.
local messages = 0
local results = {
  [operations.CALL] = called,
  [operations.CALL_PREPARED] = function(number, label)
    meet_call(prepared[number], label)
    return answered()
  end,
  [operations.CONVERSE] = function(client, label)
    meet_call(client, label)
    return answered()
  end,
  [operations.STREAM] = function(...)
    local ticket, problem, certain = called(...)
    return ticket, problem, ticket == nil and certain
  end,
  [operations.NEXT] = function(_, part)
    messages = messages + 1
    if messages % 2 == 0 then
      return answered()
    elseif part then
      return true, anything
    end
    hidden = true
    return true, { event = "message", data = "", id = "" }
  end,
  [operations.LEAVE] = answered,
  [operations.SAY] = function(_, client, _, ...)
    local goes_on, problem, certain = called(client, nil, nil, ...)
    if goes_on then
      return 1
    end
    return goes_on, problem, certain
  end,
  [operations.START] = function(client, label)
    meet_call(client, label)
    started = started + 1
  end,
  [operations.WAIT] = function()
    local all = {}
    for place = 1, started do
      all[place] = { 0, 200, true, 0 }
    end
    started, pristine = 0, false
    return all
  end,
  [operations.READ] = function(_, what)
    if what == "value" or what == "exception" then
      return true, anything
    end
    hidden = true
    return true, tables[what] and tables[what]() or ""
  end,
  [operations.CONTINUE] = nothing,
  [operations.PAUSE] = nothing,
  [operations.LABEL] = function(name, _, _, _, ...)
    labels[#labels + 1] = { name = name, tags = { ... } }
    return #labels
  end,
  [operations.CHECK] = function(label, name)
    local of = labels[label]
    meet("check", of and of.name .. ": " .. name or name)
    return 1
  end,
  [operations.CHECK_FAILED] = nothing,
  [operations.EXCUSE] = nothing,
  [operations.CHECK_PASSED] = nothing,
  [operations.GROUP] = function(path)
    meet("group", path)
    return 1
  end,
  [operations.GROUP_ENDED] = nothing,
  [operations.PREPARE] = function(client)
    prepared[#prepared + 1] = client
    return #prepared
  end,
  [operations.RELEASE] = nothing,
  [operations.MEET] = nothing,
  [operations.LOG] = nothing,
}

-- By source: the lines with code in functions that were rehearsed, and whether they were reached. And where functions
-- ended by an error, in its words.
local lines, ends, seen = {}, {}, {}

-- Notes that a function is at a line.
local function reach(line)
  local info = getinfo(3, "fSL")
  if info.source:sub(1, 6) == "=brunt" then
    return
  end
  local of_source = lines[info.source] or {}
  lines[info.source] = of_source
  if not seen[info.func] then
    seen[info.func] = true
    for known in next, info.activelines do
      -- The line of its `end` has no code of the script's.
      if known ~= info.lastlinedefined then
        of_source[known] = of_source[known] or false
      end
    end
  end
  of_source[line] = true
end

-- The lines that no rehearsal of this state reached, though they belong to functions that were: a list of stretches
-- with `file`, `first` and `last`.
function shared.unreached()
  local all = {}
  for source, of_source in next, lines do
    local numbers, open = {}, nil
    for line in next, of_source do
      numbers[#numbers + 1] = line
    end
    table.sort(numbers)
    for _, line in ipairs(numbers) do
      if of_source[line] then
        open = nil
      elseif open then
        open.last = line
      else
        open = { file = source:sub(2), first = line, last = line }
        all[#all + 1] = open
      end
    end
  end
  table.sort(all, function(one, other)
    if one.file ~= other.file then
      return one.file < other.file
    end
    return one.first < other.first
  end)
  return all
end

-- The functions that ended by an error which another answer may not cause: a list of tables with `scenario` and `problem`.
function shared.ended_early()
  return ends
end

-- Whether a function is being rehearsed.
local rehearses = false

shared.anything = anything

-- The calls, groups and checks of all rehearsals of this state.
function shared.met()
  return met
end

-- Whether a function is being rehearsed.
function shared.is_rehearsing()
  return rehearses
end

core.is_rehearsing = shared.is_rehearsing

-- Whether a made-up value was turned into one that does not show it: an error may follow from that.
function shared.is_hidden()
  return hidden
end

-- In a rehearsal, the placeholder for a value of an answer; nil when answers are real.
function core.made_up()
  return rehearses and anything or nil
end

-- The placeholder for a result of these values, if one of them contains made-up parts; nil otherwise.
function shared.made_up(...)
  return is_made_up({ ... }, 0) and anything or nil
end

-- Makes `of[name]` do nothing in a rehearsal and return `instead`, unless `is_harmless` returns true for its arguments.
local function withhold(of, name, instead, is_harmless)
  local real = of[name]
  of[name] = function(...)
    if rehearses and not (is_harmless and is_harmless(...)) then
      return instead
    end
    return real(...)
  end
end

local function is_named(name)
  return name ~= nil
end

local function is_read(_, mode)
  return mode == nil or tostring(mode):find("^r[^+]*$") ~= nil
end

local function is_no_terminal(file)
  return file ~= stdin
end

-- Withholds from a rehearsal the functions that change files, run other programs or use the terminal, even where the
-- script calls them by its own names. Called before the sandbox closes and the script runs; code at the script's top
-- has its effects.
function shared.withhold()
  withhold(_G, "print")
  withhold(os, "execute", 0)
  withhold(os, "remove", true)
  withhold(os, "rename", true)
  withhold(os, "tmpname", "anything")
  for _, name in ipairs({ "popen", "tmpfile", "output", "write", "read" }) do
    withhold(io, name, anything)
  end
  withhold(io, "open", anything, is_read)
  withhold(io, "lines", same, is_named)
  local file = getmetatable(io.stdout)
  withhold(file, "write", anything)
  withhold(file, "read", anything, is_no_terminal)
  withhold(file, "lines", same, is_no_terminal)
  local exit = os.exit
  function os.exit(...)
    if rehearses then
      error("this is enough", 0)
    end
    exit(...)
  end
end

-- An error of Lua that no answer can cause: a missing global, method or function of a library, or a function that is taken
-- for its result.
local function of_no_answer(problem)
  local is_one = type(problem) == "string"
    and (problem:find("attempt to [%a ]+ field '[^']*' %(a function value%)")
      or problem:find("attempt to %a+ global '[^']*' %(a nil value%)") or problem:find("attempt to call %a+ '[^']*' %(a nil value%)"))
  return is_one and shared.hinted(problem) or nil
end

-- Takes an error for one that need not come: a run may be given what this rehearsal lacks.
function shared.forgive()
  pristine = false
end

-- An error of Lua or of the library before anything was made up; nil for any other, such as the script's own.
local function of_nothing_made_up(problem)
  local wrong = shared.wrong_text(problem)
  local is_luas = type(problem) == "string" and (problem:find(": attempt to ", 1, true) or problem:find(": bad argument ", 1, true))
  return pristine and (wrong or is_luas and shared.hinted(problem)) or nil
end

-- The misspelling in the function of the scenario at `place`, or nil; then any other error that no answer can cause.
-- `watches`: the lines that are reached are noted. The state cannot be used for anything else afterwards.
function shared.rehearse(place, watches)
  -- Compiled code does not call the hook.
  compile_nothing()
  rehearses, pristine = true, not shared.has_setup()
  shared.give(anything)
  local thousands = 0
  local thread = shared.begin_rehearsal(place)
  -- Hooks are shared by all coroutines.
  local limit
  function limit(event, line)
    if coroutine.running() ~= thread then
      return
    elseif event == "line" then
      reach(line)
      return
    end
    thousands = thousands + 1
    if thousands > MOST_THOUSANDS then
      -- From now on at each instruction, so that a pcall in an endless loop cannot catch it for long.
      sethook(limit, "", 1)
      error("this is enough", 0)
    end
  end
  sethook(thread, limit, watches and "l" or "", 1000)
  local function go(alive, operation, ...)
    if not alive then
      if operation ~= shared.EXIT then
        local problem = tostring(shared.wrong_text(operation) or shared.hinted(operation))
        ends[#ends + 1] = { scenario = core.home("a rehearsal").vu.scenario, problem = problem:match("^[^\n]*") }
      end
      return nil, { shared.certainly_wrong(operation), of_no_answer(operation) or of_nothing_made_up(operation) }
    end
    local result = results[operation]
    return result, result and { result(...) } or nil
  end
  local result, values = go(shared.resume_rehearsal(thread))
  for _ = 1, MOST_WAITS do
    if not result then
      break
    end
    result, values = go(shared.resume_rehearsal(thread, unpack(values, 1, 4)))
  end
  sethook()
  rehearses = false
  shared.end_rehearsal()
  if not result and values then
    return values[1], values[2]
  end
end
