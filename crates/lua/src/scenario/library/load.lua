-- Scenarios and their surroundings: injections, setup and teardown, thresholds, values from the command line.

local host, brunt, core, shared = ...

local wrong, shown, seconds, number = core.wrong, core.shown, core.seconds, core.number
local check_options, at_the_top = core.check_options, shared.at_the_top
local scenarios = shared.scenarios
local getinfo = debug.getinfo

function brunt.nothing_for(length)
  return { kind = "nothing_for", seconds = seconds("a length", length) }
end

-- A number of users or iterations: a whole one.
local function count(what, value, least)
  value = number(what, value, least)
  if value % 1 ~= 0 then
    wrong(what .. " must be a whole number, not " .. shown(value))
  end
  return value
end

function brunt.at_once(users)
  return { kind = "at_once", users = count("users", users, 1) }
end

function brunt.rate(rate, length)
  rate = number("a rate", rate, 0)
  return { kind = "rate", from = rate, to = rate, seconds = seconds("a length", length) }
end

function brunt.ramp_rate(from, to, length)
  from, to = number("from of ramp_rate(from, to, length)", from, 0), number("to of ramp_rate(from, to, length)", to, 0)
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
  return { kind = "peak", users = count("users", users, 1), seconds = seconds("a length", length) }
end

function brunt.users(users, length)
  users = count("users", users, 0)
  return { kind = "users", from = users, to = users, seconds = seconds("a length", length) }
end

function brunt.ramp_users(from, to, length)
  from, to = count("from of ramp_users(from, to, length)", from, 0), count("to of ramp_users(from, to, length)", to, 0)
  return { kind = "users", from = from, to = to, seconds = seconds("a length", length) }
end

function brunt.iterations_each(users, iterations)
  return { kind = "iterations_each", users = count("users", users, 1), iterations = count("iterations", iterations, 1) }
end

function brunt.iterations_shared(users, iterations)
  users, iterations = count("users", users, 1), count("iterations", iterations, 1)
  if users > iterations then
    wrong("brunt.iterations_shared(users, iterations): " .. users .. " users cannot share " .. iterations .. " iterations, as some would have none")
  end
  return { kind = "iterations_shared", users = users, iterations = iterations }
end

-- An argument that a maker does not take would ask for something that nobody does.
for name, takes in pairs({ nothing_for = 1, at_once = 1, rate = 2, ramp_rate = 3, ramp = 2, peak = 2, users = 2,
  ramp_users = 3, iterations_each = 2, iterations_shared = 2 }) do
  local make = brunt[name]
  brunt[name] = function(...)
    local more = select(takes + 1, ...)
    if more ~= nil then
      wrong("brunt." .. name .. " takes " .. takes .. (takes == 1 and " argument" or " arguments") .. ", and not " .. shown(more)
        .. ": options such as longest stand in inject { … } itself")
    end
    return make(...)
  end
end

-- The steps of stairs: the first level, the increment, their number, the length of each, and the length between them.
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

-- Functions that make steps, and those that take their arguments by name.
local makers = { nothing_for = brunt.nothing_for, at_once = brunt.at_once, rate = brunt.rate, ramp_rate = brunt.ramp_rate,
  ramp = brunt.ramp, peak = brunt.peak, users = brunt.users, ramp_users = brunt.ramp_users,
  iterations_each = brunt.iterations_each, iterations_shared = brunt.iterations_shared }
local makers_by_name = { stairs = brunt.stairs, user_stairs = brunt.user_stairs }

local function value_of(text)
  return tonumber(text) or text
end

-- The steps written on a command line: `rate(50, 1m), users(10, 30s)`, or `stairs(from=10, by=10, steps=5, hold=1m)`.
-- Returns a problem, or nil and the steps.
function shared.steps(text)
  local steps, rest = {}, text
  if not rest:find("%S") then
    return "expected steps such as rate(50, 1m) or users(10, 30s), got none"
  end
  while rest:find("%S") do
    local name, given, behind = rest:match("^[%s,]*([%w_]+)%s*%(([^()]*)%)(.*)$")
    local make, by_name = makers[name], makers_by_name[name]
    if not make and not by_name then
      local known = {}
      for one in pairs(makers) do
        known[#known + 1] = one
      end
      for one in pairs(makers_by_name) do
        known[#known + 1] = one
      end
      table.sort(known)
      return "expected steps such as rate(50, 1m) or users(10, 30s), got '" .. rest .. "'; there are "
        .. table.concat(known, ", ")
    end
    local arguments = {}
    for one in given:gmatch("[^,]+") do
      one = one:match("^%s*(.-)%s*$")
      local key, value = one:match("^([%w_]+)%s*=%s*(.-)$")
      if key and by_name then
        arguments[key] = value_of(value)
      else
        arguments[#arguments + 1] = value_of(one)
      end
    end
    local fine, step
    if by_name then
      fine, step = pcall(by_name, arguments)
    else
      fine, step = pcall(make, unpack(arguments))
    end
    if not fine then
      return name .. "(" .. given .. "): " .. (shared.wrong_text(step) or tostring(step))
    end
    for _, one in ipairs(step.steps or { step }) do
      steps[#steps + 1] = one
    end
    rest = behind
  end
  return nil, steps
end

local Scenario = core.object()
Scenario.__index = Scenario

-- What stands in the place of options of k6's scenarios.
local INJECTIONS = {
  stages = 'steps: inject { brunt.ramp_users(0, 10, "1m"), brunt.users(10, "5m") }', executor = 'steps, such as inject { brunt.users(10, "30s") }',
  rate = 'a step: inject { brunt.rate(50, "1m") }', iterations = "a step: inject { brunt.iterations_shared(10, 200) }",
}
for _, name in ipairs({ "vus", "users", "duration", "target" }) do
  INJECTIONS[name] = 'a step: inject { brunt.users(10, "30s") }'
end

local injecting = { arrivals = true, most_alive = true, after = true, reuse_users = true, start = true, longest = true,
  grace = true, ramp_down_grace = true }

-- Sets when users come to the scenario (or to those of a mix).
function Scenario:inject(what)
  at_the_top("inject")
  if type(what) ~= "table" then
    wrong("inject takes a table of steps, such as inject{ brunt.users(10, \"30s\") }, not " .. shown(what))
  end
  if self.population then
    wrong("the users of '" .. self.name .. "' are injected already: give all steps at once")
  end
  if what.kind or what.steps then
    -- One step need not be a list.
    what = { what }
  end
  local steps = {}
  for key, value in pairs(what) do
    if type(key) ~= "number" then
      check_options("inject", { [key] = value }, injecting, INJECTIONS)
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
  local function length(name)
    return what[name] ~= nil and seconds(name, what[name]) or nil
  end
  local problem, place = host.population({
    scenarios = self.weighted,
    steps = steps,
    arrivals = what.arrivals,
    most_alive = what.most_alive,
    after = after,
    reuse_users = what.reuse_users,
    start_seconds = length("start"),
    longest_seconds = length("longest"),
    grace_seconds = length("grace"),
    ramp_down_grace_seconds = length("ramp_down_grace"),
  })
  if problem then
    wrong(problem)
  end
  self.population = place
  return self
end

-- Sets the last function of each user, after its iterations: log out, tell a server. It is not an iteration.
function Scenario:on_stop(run)
  at_the_top("on_stop")
  if type(run) ~= "function" then
    wrong("on_stop takes a function, not " .. shown(run))
  elseif not self.declared then
    wrong("on_stop is for a scenario, not for a mix: say it of each of its scenarios")
  elseif self.declared.stop then
    wrong("'" .. self.name .. "' has an on_stop already")
  end
  self.declared.stop, shared.stops = run, true
  return self
end

core.with_colon("scenario", Scenario)

function brunt.scenario(name, run)
  at_the_top("brunt.scenario")
  if type(name) ~= "string" or type(run) ~= "function" then
    wrong("brunt.scenario takes a name and a function, not " .. shown(name) .. " and " .. shown(run))
  end
  name = host.without_secrets(name)
  for _, scenario in ipairs(scenarios) do
    if scenario.name == name then
      wrong("there are two scenarios called '" .. name .. "'")
    end
  end
  local declared = { name = name, run = run }
  scenarios[#scenarios + 1] = declared
  return setmetatable({ name = name, declared = declared, weighted = { { scenario = name, weight = 1 } } }, Scenario)
end

function brunt.mix(parts)
  at_the_top("brunt.mix")
  local weighted, names = {}, {}
  core.check_weighted("brunt.mix", parts)
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

local function once_a_run(whose, run, known)
  if type(run) ~= "function" then
    wrong(whose .. " takes a function, not " .. shown(run))
  end
  if known then
    wrong(whose .. " is there already: a run has one")
  end
  return run
end

function brunt.setup(run)
  at_the_top("brunt.setup")
  setup = once_a_run("brunt.setup", run, setup)
end

function brunt.teardown(run)
  at_the_top("brunt.teardown")
  teardown = once_a_run("brunt.teardown", run, teardown)
end

local handle_summary

function brunt.handle_summary(run)
  at_the_top("brunt.handle_summary")
  handle_summary = once_a_run("brunt.handle_summary", run, handle_summary)
end

-- Gives the script the result of its run, a JSON document as text. Returns the texts that the script makes of it, by
-- the names of their files; nil if it makes none.
function shared.handle_summary(document)
  if not handle_summary then
    return nil
  end
  local texts = handle_summary(brunt.json.decode(document))
  if texts == nil then
    return {}
  elseif type(texts) ~= "table" then
    wrong("brunt.handle_summary takes a function that returns a table of files and texts, such as { [\"summary.txt\"] = text }, not "
      .. shown(texts))
  end
  for name, text in pairs(texts) do
    if type(name) ~= "string" or type(text) ~= "string" then
      wrong("what brunt.handle_summary makes are texts by the names of their files, not " .. shown(text) .. " by " .. shown(name))
    end
  end
  return texts
end

-- What k6 calls figures, and its metrics whose figure has a name of its own.
local STATISTICS, METRICS = { avg = "mean", med = "p50" }, { http_req_failed = "error_rate", checks = "checks" }

-- A threshold in the words of k6, such as `http_req_duration = "p(95)<500"`, as brunt has it; nil for any other.
local function of_k6(figure, condition)
  local statistic, value = condition:match("^%s*([%a_][%w_.()]*)%s*([<>=].*)$")
  if not statistic then
    return nil
  end
  local metric, tags = figure:match("^([%w_]+){?(.-)}?$")
  statistic = STATISTICS[statistic] or statistic:gsub("[()]", "")
  local here = METRICS[metric] or statistic
  if metric and metric:find("^http_req_") and not METRICS[metric] then
    value = value:gsub("(%d)%s*$", "%1ms")
  elseif metric and not METRICS[metric] then
    here = metric .. ":" .. (shared.main_part(metric) == "share" and "share" or here)
  end
  here = tags and tags ~= "" and "{" .. tags:gsub("%s*:%s*", "=") .. "}:" .. here or here
  return (here:find("[^%w_]") and '["' .. here .. '"]' or here) .. ' = "' .. value:gsub("^([<>=]+)%s*", "%1 ") .. '"'
end

function brunt.expect(expected)
  at_the_top("brunt.expect")
  if type(expected) ~= "table" then
    wrong("brunt.expect takes a table such as { p99 = \"< 50ms\" }, not " .. shown(expected))
  end
  -- Sorted, so that the order is the same in every run.
  local figures = {}
  for figure in pairs(expected) do
    if type(figure) ~= "string" then
      wrong("brunt.expect takes figures by their names, such as p99 = \"< 50ms\", not " .. shown(figure))
    end
    figures[#figures + 1] = figure
  end
  table.sort(figures)
  for _, figure in ipairs(figures) do
    local condition = expected[figure]
    local abort = false
    if type(condition) == "table" then
      check_options("brunt.expect", condition, { [1] = true, abort = true })
      condition, abort = condition[1], condition.abort == true
    end
    if type(condition) ~= "string" then
      wrong("brunt.expect takes a figure and a condition, such as p99 = \"< 50ms\", not " .. shown(condition))
    end
    local problem = host.expect(figure, condition, abort)
    local here, part = problem and of_k6(figure, condition), problem and shared.main_part(figure)
    if here then
      wrong("brunt.expect takes a figure and its condition: write " .. here .. ", not " .. figure .. ' = "' .. condition .. '"')
    elseif part then
      wrong("'" .. figure .. "' is a figure of the script with several parts: write [\"" .. figure .. ":" .. part .. '"] = "' .. condition .. '"')
    elseif problem then
      wrong(problem)
    end
  end
end

local function hosts_by(whose, rules)
  at_the_top(whose)
  local problem = host.hosts(rules)
  if problem then
    wrong(whose .. ": " .. problem)
  end
end

function brunt.hosts(mapped)
  if type(mapped) ~= "table" or #mapped > 0 then
    wrong("brunt.hosts takes hosts and where they are, such as { [\"api.example\"] = \"127.0.0.1:8080\" }, not " .. shown(mapped))
  end
  hosts_by("brunt.hosts", { mapped = mapped })
end

function brunt.block(blocked)
  if type(blocked) ~= "table" or next(blocked) ~= nil and #blocked == 0 then
    wrong("brunt.block takes a list of hosts, such as { \"*.ads.example\", \"10.0.0.0/8\" }, not " .. shown(blocked))
  end
  hosts_by("brunt.block", { blocked = #blocked > 0 and blocked or nil })
end

function brunt.throttle(profile)
  at_the_top("brunt.throttle")
  local problem = host.throttle(tostring(profile))
  if problem then
    wrong(problem)
  end
end

function brunt.env(name, default)
  if type(name) ~= "string" then
    wrong("brunt.env takes the name of a value, not " .. shown(name))
  end
  local value = host.env(name)
  if value == nil then
    if default == nil then
      shared.forgive()
      wrong(host.missing(name))
    end
    return default
  end
  if type(default) ~= "number" then
    return value
  end
  -- The value takes the place of a number.
  local read = tonumber(value)
  if not read or read ~= read then
    wrong("brunt.env: " .. name .. " must be a number, as " .. shown(default) .. " is, which it replaces: not " .. shown(value))
  end
  return read
end

-- The place of a scenario, by its name.
function shared.place(name)
  for place, scenario in ipairs(scenarios) do
    if scenario.name == name then
      return place
    end
  end
end

-- Where the function of the scenario at `place` is written.
function shared.written_at(place)
  local scenario = scenarios[place]
  local info = getinfo(scenario.written or scenario.run, "S")
  return info.source:gsub("^@", "") .. ":" .. info.linedefined
end

-- The names of the scenarios, in their order.
function shared.names()
  local names = {}
  for place, scenario in ipairs(scenarios) do
    names[place] = scenario.name
  end
  return names
end

-- Whether scenarios are given what setup returns.
function shared.has_setup()
  return setup ~= nil
end

-- Makes setup or teardown a separate scenario; nil if the script has none.
function shared.once(which)
  local run = which == "setup" and setup or which == "teardown" and teardown
  if not run then
    return nil
  end
  scenarios[#scenarios + 1] = {
    name = which,
    written = run,
    run = which == "teardown" and function(_, values)
      run(values)
    end or function()
      shared.give(run())
    end,
  }
  return #scenarios
end
