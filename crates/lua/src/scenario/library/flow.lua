-- What users do besides calling: pauses, groups, checks, and how they end.

local host, brunt, core, shared = ...

local yield = coroutine.yield
local log, random = math.log, math.random
local wrong, raise, shown, seconds, me = core.wrong, core.raise, core.shown, core.seconds, core.user
local check_options, waiting = core.check_options, core.waiting_user
local operations = host.operations
local PAUSE, END, STOP = operations.PAUSE, operations.END, operations.STOP
local GROUP, GROUP_ENDED = operations.GROUP, operations.GROUP_ENDED
local CHECK, CHECK_FAILED, CHECK_PASSED = operations.CHECK, operations.CHECK_FAILED, operations.CHECK_PASSED

local function wait(user, length)
  if length > 0 then
    local began = user.now
    yield(PAUSE, length)
    user.paused = user.paused + (user.now - began)
  end
end

function brunt.pause(least, most)
  local user = waiting("brunt.pause")
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

-- Ends a group, with what its function has returned. Groups within it that an error has ended, which was caught, are over.
local function leave_group(user, depth, outer, ...)
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

function brunt.group(name, run, ...)
  local user = waiting("brunt.group")
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
  return leave_group(user, depth, outer, run(...))
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
  waiting("brunt.check")
  local id = yield(CHECK, label, tostring(name))
  of_label[name] = id
  return id
end

function brunt.check(subject, held_by_name)
  me("brunt.check")
  if type(held_by_name) ~= "table" then
    wrong("brunt.check takes an answer and a table of checks, not " .. shown(held_by_name))
  end
  local is_answer = type(subject) == "table" and rawget(subject, "label") ~= nil
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
        waiting("brunt.check")
        yield(CHECK_PASSED, id)
      end
    else
      all = false
      local first = is_answer and not rawget(subject, "failed")
      if first then
        rawset(subject, "failed", true)
      end
      waiting("brunt.check")
      yield(CHECK_FAILED, id, is_answer and rawget(subject, 1) or 0, label, first)
    end
  end
  return all
end

-- How often checks have held since this was last asked: number, count, number, count …
function shared.take_passes()
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
  waiting("brunt.stop_user")
  yield(END)
end

function brunt.stop_run(reason)
  waiting("brunt.stop_run")
  yield(STOP, reason ~= nil and tostring(reason) or "no reason given")
end

-- From now on each check that holds is told of.
function shared.trace()
  traced = true
end
