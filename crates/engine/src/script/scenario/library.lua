-- What scenarios are written with: the module `brunt`, and `core`, by which protocols make their parts of it.
--
-- A virtual user is a coroutine. Whatever it wants of the engine it yields, an operation and its values, and is resumed
-- with what came of it; the engine calls `step` and gets the next operation back. All of a user's state that is not the
-- engine's is in the table `users`, by the engine's number for the user.

local host = ...

local yield, resume, create = coroutine.yield, coroutine.resume, coroutine.create
local traceback, getinfo = debug.traceback, debug.getinfo
local floor, log, random = math.floor, math.log, math.random

-- The operations, as `operation.rs` has them.
local CALL, START, WAIT, PAUSE, ITERATED, END, FAILED, READ = 1, 2, 3, 4, 5, 6, 7, 8
local LABEL, CHECK, CHECK_FAILED, GROUP, GROUP_ENDED, STOP, EXHAUSTED, CHECK_PASSED = 9, 10, 11, 12, 13, 14, 15, 16

local brunt, core = {}, {}

-- Errors --------------------------------------------------------------------------------------------------------------

-- What is wrong with the script, whatever comes of its calls: it ends the run.
local Wrong = {}
Wrong.__index = Wrong
Wrong.__tostring = function(self)
  return self.text
end

-- "file:line: " of the innermost function that is not ours.
local function position()
  for level = 2, 50 do
    local info = getinfo(level, "Sl")
    if not info then
      return ""
    end
    if info.currentline > 0 and info.source:sub(1, 6) ~= "=brunt" then
      return info.short_src .. ":" .. info.currentline .. ": "
    end
  end
  return ""
end

local function wrong(message)
  error(setmetatable({ text = position() .. message }, Wrong), 0)
end

local function raise(message)
  error(position() .. message, 0)
end

core.wrong, core.raise = wrong, raise

-- What a value is, for errors.
local function shown(value)
  if type(value) == "string" then
    return "'" .. value .. "'"
  end
  return type(value) == "number" and tostring(value) or (value == nil and "nil" or "a " .. type(value))
end

-- Checks that a table of options has no others than those known, a set.
local function check_options(whose, options, known)
  if options == nil then
    return
  end
  if type(options) ~= "table" then
    wrong(whose .. " takes a table of options, not " .. shown(options))
  end
  for name in pairs(options) do
    if not known[name] then
      local names = {}
      for name in pairs(known) do
        names[#names + 1] = name
      end
      table.sort(names)
      wrong(host.unknown(whose, tostring(name), table.concat(names, " ")))
    end
  end
end

core.check_options = check_options

-- A duration in seconds, of a number of them or a text such as "500ms".
local function seconds(what, value)
  local read = value
  if type(value) == "string" then
    read = host.duration(value)
  end
  if type(read) ~= "number" or not (read >= 0) or read > 2592000 then
    wrong(what .. " must be a duration such as 2 (seconds) or \"500ms\", not " .. shown(value))
  end
  return read
end

core.seconds = seconds

local function number(what, value, least)
  if type(value) ~= "number" or not (value >= least) then
    wrong(what .. " must be a number" .. (least > 0 and " of at least " .. least or "") .. ", not " .. shown(value))
  end
  return value
end

-- Users ---------------------------------------------------------------------------------------------------------------

local users = {}
-- The user that runs now.
local current
-- Coroutines whose user has ended between two iterations: another can have them.
local spare, spares = {}, 0
local MOST_SPARE = 1000

-- What scenarios do, by their places; and what setup has given.
local scenarios, given = {}, nil

local function me(what)
  if not current then
    wrong(what .. " is for virtual users: call it in a scenario's function, or in setup or teardown")
  end
  return current
end

core.user = me

local function live(user)
  while true do
    local vu = user.vu
    vu.iteration = vu.iteration + 1
    user.run(vu, given)
    user = yield(ITERATED, user.pacing) or user
  end
end

local ACROSS = "attempt to yield across"
local ACROSS_HINT = " (a call, a pause or an answer's body cannot be waited for inside table.sort, string.gsub, or any "
  .. "other function of C that calls back: do it before or after)"

-- What a step came to. A coroutine that is dead has failed: the error stands where the operation would.
local function settle(slot, user, alive, operation, ...)
  current = nil
  if alive then
    return operation, ...
  end
  local thread = user.thread
  user.thread = nil
  if getmetatable(operation) == Wrong then
    return FAILED, operation.text, true
  end
  local text = tostring(operation)
  if text:find(ACROSS, 1, true) then
    text = text .. ACROSS_HINT
  end
  return FAILED, traceback(thread, text), false
end

-- Goes on with a user, with what came of its operation.
local function step(slot, now, ...)
  local user = users[slot]
  current, user.now = user, now
  return settle(slot, user, resume(user.thread, ...))
end

-- Begins an iteration of a user: a new one (with its number and its scenario's place), or one that was there.
local function begin(slot, now, id, place)
  local user = users[slot]
  if not user then
    local scenario = scenarios[place]
    user = { vu = { id = id, iteration = 0, scenario = scenario.name, store = {} }, run = scenario.run, paused = 0 }
    users[slot] = user
  end
  current, user.now = user, now
  local thread = user.thread
  if thread then
    return settle(slot, user, resume(thread))
  end
  if spares > 0 then
    thread, spare[spares] = spare[spares], nil
    spares = spares - 1
  else
    thread = create(live)
  end
  user.thread = thread
  return settle(slot, user, resume(thread, user))
end

-- Forgets a user. `between` says that it stands between two iterations.
local function forget(slot, between)
  local user = users[slot]
  users[slot] = nil
  if between and user and user.thread and spares < MOST_SPARE then
    spares = spares + 1
    spare[spares] = user.thread
  end
end

-- The groups that a user is in, outermost first, as number, time with pauses, time without; they end here.
local function leave_groups(slot, now)
  local user = users[slot]
  local groups, ended = user and user.groups, {}
  if groups then
    for place, group in ipairs(groups) do
      local took = now - group.began
      ended[place * 3 - 2], ended[place * 3 - 1], ended[place * 3] = group.id, took, took - (user.paused - group.paused)
    end
    user.groups, user.group = nil, nil
  end
  return ended
end

-- Names ---------------------------------------------------------------------------------------------------------------

-- Numbers of calls' names. Those that scripts make up without end all become one, and are not remembered.
local labels, label_names, labelled = {}, {}, 0
local MOST_LABELS = 2000

local function new_label(key, name, ...)
  local label = yield(LABEL, name, ...)
  if labelled < MOST_LABELS then
    labelled = labelled + 1
    labels[key] = label
  end
  return label
end

local function tagged_label(name, tags)
  if type(tags) ~= "table" then
    wrong("tags must be a table such as { plan = \"pro\" }, not " .. shown(tags))
  end
  local texts = {}
  for key, value in pairs(tags) do
    texts[#texts + 1] = tostring(key) .. "=" .. tostring(value)
  end
  table.sort(texts)
  local key = name .. "\0" .. table.concat(texts, "\0")
  return labels[key] or new_label(key, name, unpack(texts))
end

-- The number of a name, with these tags if there are any.
local function label_of(name, tags)
  if tags then
    return tagged_label(name, tags)
  end
  return labels[name] or new_label(name, name)
end

core.label = label_of

-- Calls ---------------------------------------------------------------------------------------------------------------

-- What the engine says of a call that has ended.
local function answer_of(label, ticket, status, ok, flags, failure, reason)
  if not ticket then
    raise(status)
  end
  if failure then
    return { ticket = ticket, status = 0, ok = false, flags = 0, label = label, error = failure, reason = reason }
  end
  return { ticket = ticket, status = status, ok = ok, flags = flags, label = label }
end

-- One call of a client. `options` may have `name`, `tags` and `timeout`; what stands behind it is the protocol's.
function core.call(client, name, options, ...)
  me("a call")
  local label, timeout
  if options then
    label = label_of(options.name or name, options.tags)
    timeout = options.timeout and seconds("timeout", options.timeout)
  else
    label = labels[name] or new_label(name, name)
  end
  return answer_of(label, yield(CALL, client, label, timeout, ...))
end

-- Begins a call; its answer is among those of the next `core.wait`.
function core.start(client, name, options, ...)
  local user = me("a call")
  local label = label_of(options and options.name or name, options and options.tags)
  local timeout = options and options.timeout and seconds("timeout", options.timeout)
  local problem = yield(START, client, label, timeout, ...)
  if problem then
    raise(problem)
  end
  local started = user.started
  if not started then
    started = {}
    user.started = started
  end
  started[#started + 1] = label
end

-- Waits until all calls that were started have ended; gives their answers in that order.
function core.wait()
  local user = me("waiting for calls")
  local started = user.started or {}
  user.started = nil
  local answers = {}
  if #started > 0 then
    local results = yield(WAIT)
    for place, label in ipairs(started) do
      local result = results[place]
      answers[place] = answer_of(label, unpack(result, 1, 6))
    end
  end
  return answers
end

-- Reads a part of an answer.
function core.read(answer, what)
  me("reading an answer")
  local found, value = yield(READ, answer.ticket, what)
  if not found then
    raise(value)
  end
  return value
end

-- Makes a client: `options` with those that are the engine's.
function core.client(name, options)
  if current then
    wrong("brunt." .. name .. " makes a client for the whole run: make it at the top of the script, outside the functions")
  end
  local problem, client = host.client(name, options or {})
  if problem then
    wrong(problem)
  end
  return client
end

-- The base of a client, such as "http://127.0.0.1:8080", or nil.
function core.base(client)
  return host.base(client)
end

core.base64 = host.base64

-- Flow ----------------------------------------------------------------------------------------------------------------

local function wait(user, length)
  if length > 0 then
    local began = user.now
    yield(PAUSE, length)
    user.paused = user.paused + (user.now - began)
  end
end

function brunt.pause(least, most)
  local user = me("brunt.pause")
  if type(least) == "table" then
    check_options("brunt.pause", least, { exponential = true })
    return wait(user, -log(1 - random()) * seconds("the mean of a pause", least.exponential))
  end
  local length = seconds("a pause", least)
  if most ~= nil then
    local longest = seconds("a pause", most)
    if longest < length then
      wrong("a pause between two lengths has the shorter first, not " .. shown(least) .. " and " .. shown(most))
    end
    length = length + random() * (longest - length)
  end
  wait(user, length)
end

function brunt.pacing(length)
  me("brunt.pacing").pacing = seconds("the pacing", length)
end

function brunt.group(name, run, ...)
  local user = me("brunt.group")
  if type(name) ~= "string" or type(run) ~= "function" then
    wrong("brunt.group takes a name and a function, not " .. shown(name) .. " and " .. shown(run))
  end
  local outer = user.group
  local path = outer and outer .. "/" .. name or name
  local id = yield(GROUP, path)
  local groups = user.groups
  if not groups then
    groups = {}
    user.groups = groups
  end
  local depth = #groups + 1
  groups[depth] = { id = id, began = user.now, paused = user.paused }
  user.group = path
  return core.leave_group(user, depth, outer, run(...))
end

-- Ends a group, with what its function has returned. Groups within it that an error has ended, which was caught, are over.
function core.leave_group(user, depth, outer, ...)
  local groups = user.groups
  for place = #groups, depth, -1 do
    local group = groups[place]
    groups[place] = nil
    local took = user.now - group.began
    yield(GROUP_ENDED, group.id, took, took - (user.paused - group.paused), place == depth)
  end
  user.group = outer
  return ...
end

-- Numbers of checks, by label (0 for none) and name; how often each has held since it was last asked.
local checks, passes = {}, {}
-- Whether somebody wants to see each check that holds.
local traced = false

local function check_id(label, name)
  local of_label = checks[label]
  if not of_label then
    of_label = {}
    checks[label] = of_label
  end
  local id = yield(CHECK, label, tostring(name))
  of_label[name] = id
  return id
end

function brunt.check(subject, held_by_name)
  me("brunt.check")
  if type(held_by_name) ~= "table" then
    wrong("brunt.check takes an answer and a table of checks, not " .. shown(held_by_name))
  end
  local is_answer = type(subject) == "table" and rawget(subject, "ticket") ~= nil
  local label = is_answer and subject.label or 0
  local of_label, all = checks[label], true
  for name, held in pairs(held_by_name) do
    if type(held) == "function" then
      held = held(subject)
    end
    local id = of_label and of_label[name] or check_id(label, name)
    if held then
      passes[id] = (passes[id] or 0) + 1
      if traced then
        yield(CHECK_PASSED, id)
      end
    else
      all = false
      local first = is_answer and not rawget(subject, "failed")
      if first then
        rawset(subject, "failed", true)
      end
      yield(CHECK_FAILED, id, is_answer and subject.ticket or 0, label, first)
    end
  end
  return all
end

-- How often checks have held since this was last asked: number, count, number, count …
local function take_passes()
  local taken = {}
  for id, count in pairs(passes) do
    taken[#taken + 1], taken[#taken + 2] = id, count
    passes[id] = nil
  end
  return taken
end

function brunt.fail(message)
  me("brunt.fail")
  raise(tostring(message or "brunt.fail was called"))
end

function brunt.stop_user()
  me("brunt.stop_user")
  yield(END)
end

function brunt.stop_run(reason)
  me("brunt.stop_run")
  yield(STOP, reason and tostring(reason))
end

-- Load ----------------------------------------------------------------------------------------------------------------

local function at_the_top(what)
  if current then
    wrong(what .. " is for the top of the script, before anybody comes")
  end
end

function brunt.nothing_for(length)
  return { kind = "nothing_for", seconds = seconds("a length", length) }
end

function brunt.at_once(users)
  return { kind = "at_once", users = number("users", users, 1) }
end

function brunt.rate(rate, length)
  rate = number("a rate", rate, 0)
  return { kind = "rate", from = rate, to = rate, seconds = seconds("a length", length) }
end

function brunt.ramp_rate(from, to, length)
  from, to = number("a rate", from, 0), number("a rate", to, 0)
  return { kind = "rate", from = from, to = to, seconds = seconds("a length", length) }
end

function brunt.ramp(users, length)
  length = seconds("a length", length)
  if length <= 0 then
    wrong("a ramp must have a length above 0")
  end
  local rate = number("users", users, 1) / length
  return { kind = "rate", from = rate, to = rate, seconds = length }
end

function brunt.peak(users, length)
  return { kind = "peak", users = number("users", users, 1), seconds = seconds("a length", length) }
end

function brunt.users(users, length)
  users = number("users", users, 0)
  return { kind = "users", from = users, to = users, seconds = seconds("a length", length) }
end

function brunt.ramp_users(from, to, length)
  from, to = number("users", from, 0), number("users", to, 0)
  return { kind = "users", from = from, to = to, seconds = seconds("a length", length) }
end

function brunt.iterations_each(users, iterations)
  return { kind = "iterations_each", users = number("users", users, 1), iterations = number("iterations", iterations, 1) }
end

function brunt.iterations_shared(users, iterations)
  return { kind = "iterations_shared", users = number("users", users, 1), iterations = number("iterations", iterations, 1) }
end

-- Steps of stairs: from, up by, how many, how long each, and how long between them.
local function stairs(whose, options, hold, ramp)
  check_options(whose, options, { from = true, by = true, steps = true, hold = true, ramp = true })
  local level, by = number(whose .. ": from", options.from, 0), number(whose .. ": by", options.by, -1e12)
  local steps = {}
  for place = 1, number(whose .. ": steps", options.steps, 1) do
    if place > 1 and options.ramp then
      steps[#steps + 1] = ramp(level - by, level, options.ramp)
    end
    steps[#steps + 1] = hold(level, options.hold)
    level = level + by
  end
  return { steps = steps }
end

function brunt.stairs(options)
  return stairs("brunt.stairs", options, brunt.rate, brunt.ramp_rate)
end

function brunt.user_stairs(options)
  return stairs("brunt.user_stairs", options, brunt.users, brunt.ramp_users)
end

local Scenario = {}
Scenario.__index = Scenario

local injecting = { arrivals = true, most_alive = true, after = true }

-- Says when users come to the scenario (or those of a mix).
function Scenario:inject(what)
  at_the_top("inject")
  if type(what) ~= "table" then
    wrong("inject takes a table of steps, such as inject{ brunt.users(10, \"30s\") }, not " .. shown(what))
  end
  if self.population then
    wrong("the users of '" .. self.name .. "' are injected already: give all steps at once")
  end
  local steps = {}
  for key, value in pairs(what) do
    if type(key) ~= "number" then
      check_options("inject", { [key] = value }, injecting)
    end
  end
  for _, step in ipairs(what) do
    if type(step) ~= "table" or not (step.kind or step.steps) then
      wrong("a step of inject is made by brunt.users, brunt.rate and their like, not " .. shown(step))
    end
    for _, one in ipairs(step.steps or { step }) do
      steps[#steps + 1] = one
    end
  end
  local after
  if what.after ~= nil then
    after = type(what.after) == "table" and what.after.population
    if not after then
      wrong("after takes a scenario whose users were injected before, not " .. shown(what.after))
    end
  end
  local problem, place = host.population({
    scenarios = self.weighted,
    steps = steps,
    arrivals = what.arrivals,
    most_alive = what.most_alive,
    after = after,
  })
  if problem then
    wrong(problem)
  end
  self.population = place
  return self
end

function brunt.scenario(name, run)
  at_the_top("brunt.scenario")
  if type(name) ~= "string" or type(run) ~= "function" then
    wrong("brunt.scenario takes a name and a function, not " .. shown(name) .. " and " .. shown(run))
  end
  for _, scenario in ipairs(scenarios) do
    if scenario.name == name then
      wrong("there are two scenarios called '" .. name .. "'")
    end
  end
  scenarios[#scenarios + 1] = { name = name, run = run }
  return setmetatable({ name = name, weighted = { { scenario = name, weight = 1 } } }, Scenario)
end

function brunt.mix(parts)
  at_the_top("brunt.mix")
  local weighted, names = {}, {}
  for _, part in ipairs(type(parts) == "table" and parts or {}) do
    local scenario, weight = part[1], part[2]
    if getmetatable(scenario) ~= Scenario then
      wrong("brunt.mix takes scenarios with their weights, such as brunt.mix{ { browse, 90 }, { buy, 10 } }")
    end
    weighted[#weighted + 1] = { scenario = scenario.name, weight = number("a weight", weight, 0) }
    names[#names + 1] = scenario.name
  end
  if #weighted == 0 then
    wrong("brunt.mix takes scenarios with their weights, such as brunt.mix{ { browse, 90 }, { buy, 10 } }")
  end
  return setmetatable({ name = table.concat(names, ", "), weighted = weighted }, Scenario)
end

local setup, teardown

function brunt.setup(run)
  at_the_top("brunt.setup")
  setup = run
end

function brunt.teardown(run)
  at_the_top("brunt.teardown")
  teardown = run
end

function brunt.expect(expected)
  at_the_top("brunt.expect")
  if type(expected) ~= "table" then
    wrong("brunt.expect takes a table such as { p99 = \"< 50ms\" }, not " .. shown(expected))
  end
  for figure, condition in pairs(expected) do
    local abort = false
    if type(condition) == "table" then
      check_options("brunt.expect", condition, { [1] = true, abort = true })
      condition, abort = condition[1], condition.abort == true
    end
    if type(figure) ~= "string" or type(condition) ~= "string" then
      wrong("brunt.expect takes a figure and a condition, such as p99 = \"< 50ms\", not " .. shown(condition))
    end
    local problem = host.expect(figure, condition, abort)
    if problem then
      wrong(problem)
    end
  end
end

function brunt.throttle(profile)
  at_the_top("brunt.throttle")
  local problem = host.throttle(tostring(profile))
  if problem then
    wrong(problem)
  end
end

function brunt.env(name, default)
  local value = host.env(name)
  if value == nil then
    if default == nil then
      wrong("nothing is called '" .. tostring(name) .. "': give it with --env " .. tostring(name) .. "=VALUE")
    end
    return default
  end
  return value
end

-- Data ----------------------------------------------------------------------------------------------------------------

local Data, Feeder = {}, {}
Data.__index, Feeder.__index = Data, Feeder

local function feeder(order)
  return function(self)
    at_the_top("a feeder")
    return setmetatable({ data = self, feeder = host.feeder(self.data, order) }, Feeder)
  end
end

Data.circular, Data.random = feeder("circular"), feeder("random")
Data.shuffled, Data.queue = feeder("shuffled"), feeder("queue")

function Data:length()
  return host.length(self.data)
end

-- The row after the last one that anybody was given. When a queue is empty, its scenario ends.
function Feeder:next()
  local place = host.next(self.feeder)
  while not place do
    me("a queue")
    yield(EXHAUSTED)
  end
  local data = self.data
  if data.rows then
    return data.rows[place]
  end
  local row = host.row(data.data, place)
  return data.meta and setmetatable(row, data.meta) or row
end

local function data_of(kind, name, options)
  at_the_top("brunt." .. kind)
  if type(name) ~= "string" then
    wrong("brunt." .. kind .. " takes the name of a file, not " .. shown(name))
  end
  check_options("brunt." .. kind, options, { columns = true, separator = true })
  local problem, data, columns = host.data(kind, name, options or {})
  if problem then
    wrong(problem)
  end
  local meta
  if columns then
    meta = {
      __index = function(_, column)
        wrong(name .. " has no column '" .. tostring(column) .. "'; it has " .. columns)
      end,
    }
  end
  return setmetatable({ data = data, meta = meta }, Data)
end

for _, kind in ipairs({ "csv", "json", "jsonl", "lines" }) do
  brunt[kind] = function(name, options)
    return data_of(kind, name, options)
  end
end

function brunt.data(rows)
  at_the_top("brunt.data")
  if type(rows) ~= "table" or #rows == 0 then
    wrong("brunt.data takes a table of rows, with at least one")
  end
  return setmetatable({ data = host.rows(#rows), rows = rows }, Data)
end

brunt.decode_json, brunt.encode_json, brunt.null = host.decode_json, host.encode_json, host.null

-- Modules beside the script.
table.insert(package.loaders, 2, function(name)
  local file = name:gsub("%.", "/") .. ".lua"
  local text = host.module(file)
  if not text then
    return "\n\tno file '" .. file .. "' beside the script"
  end
  local chunk, problem = loadstring(text, "@" .. file)
  if not chunk then
    error(problem, 0)
  end
  return chunk
end)

package.loaded.brunt = brunt

-- What the engine calls.
return {
  brunt = brunt,
  core = core,
  step = step,
  begin = begin,
  forget = forget,
  leave_groups = leave_groups,
  take_passes = take_passes,
  trace = function()
    traced = true
  end,
  -- Whether there is such a scenario, and its place.
  place = function(name)
    for place, scenario in ipairs(scenarios) do
      if scenario.name == name then
        return place
      end
    end
  end,
  -- The names of the scenarios, in their order.
  names = function()
    local names = {}
    for place, scenario in ipairs(scenarios) do
      names[place] = scenario.name
    end
    return names
  end,
  -- Makes setup or teardown a scenario of its own; nil if there is none.
  once = function(which)
    local run = which == "setup" and setup or which == "teardown" and teardown
    if not run then
      return nil
    end
    scenarios[#scenarios + 1] = {
      name = which,
      run = which == "teardown" and function(_, values)
        run(values)
      end or function()
        given = run()
      end,
    }
    return #scenarios
  end,
  -- What setup has given, and to whom it is given.
  given = function()
    return given
  end,
  give = function(values)
    given = values
  end,
}
