-- Virtual users. Each is a coroutine. For anything that it wants of the engine, it yields an operation and its
-- arguments, and is resumed with the result. The engine calls `step`, which returns the next operation. State of a user
-- outside the engine is in the table `users`, by the engine's number for the user.

local host, brunt, core, shared = ...

local next, type = next, type
local yield, resume, create = coroutine.yield, coroutine.resume, coroutine.create
local running, is_yieldable = coroutine.running, coroutine.isyieldable
local traceback = debug.traceback
local wrong = core.wrong
-- Numbers of operations, as in `operation.rs`.
local ITERATED, FAILED, AGAIN = host.operations.ITERATED, host.operations.FAILED, host.operations.AGAIN
local TASK_ENDED = host.operations.TASK_ENDED

local users = {}
-- The user that is running.
local current
-- Coroutines whose user has ended between two iterations: other users can reuse them.
local spare, spares = {}, 0
local MOST_SPARE = 1000

-- The functions of scenarios, by their places; and the value that setup has returned.
local scenarios, given = {}, nil

shared.scenarios, shared.users = scenarios, users

local function me(what)
  if not current then
    wrong(what .. " is for virtual users: call it in a scenario's function, or in setup or teardown")
  end
  return current
end

core.user = me

-- The user on whose behalf the current code runs: the running user, or the one whose task it is.
function core.home(what)
  local user = me(what)
  return user.home or user
end

-- A table for values that the user keeps from one iteration to the next: `vu.store`, under a name that every function
-- can use.
brunt.user = setmetatable({}, {
  __index = function(_, key)
    return core.home("brunt.user").vu.store[key]
  end,
  __newindex = function(_, key, value)
    core.home("brunt.user").vu.store[key] = value
  end,
})

-- The number of the current iteration among all of the run: drawn when it is asked for, and kept for the iteration.
function brunt.run_iteration()
  local user = core.home("brunt.run_iteration")
  local numbered = user.numbered
  if not numbered or numbered[1] ~= user.vu.iteration then
    numbered = { user.vu.iteration, host.run_iteration() }
    user.numbered = numbered
  end
  return numbered[2]
end

-- The table of the running user's home under this name, which its tasks share; empty at first.
function core.kept(what, name)
  local user = core.home(what)
  local table = user[name]
  if not table then
    table = {}
    user[name] = table
  end
  return table
end

-- Raised to end an iteration, or a task, without an error.
local EXIT = setmetatable({}, {
  __tostring = function()
    return "brunt.exit_here"
  end,
})

shared.EXIT = EXIT

local WAITS_FOR_C = " cannot wait inside table.sort, string.gsub, or any other function of C that calls back: do it before "
  .. "or after"
local WAITS_ASIDE = " cannot wait in a coroutine that the script has made: what is yielded there goes to who resumes it, and "
  .. "not to brunt; use a plain function"

-- The running user, where it can wait for a result.
local function waiting(what)
  local user = me(what)
  if not is_yieldable() then
    wrong(what .. WAITS_FOR_C, true)
  elseif running() ~= user.thread then
    wrong(what .. WAITS_ASIDE, true)
  end
  return user
end

core.waiting_user = waiting

-- Whether the running user can wait.
function shared.can_wait()
  return current ~= nil and is_yieldable() and running() == current.thread
end

-- Checks that a function is called at the top of the script.
function shared.at_the_top(what)
  if current then
    wrong(what .. " is for the top of the script, before anybody comes", true)
  end
end

-- Whether a user is running.
function shared.is_running()
  return current ~= nil
end

-- A copy of a value with all tables in it; `copies` has the tables copied so far.
local function copied(value, copies)
  if type(value) ~= "table" or value == shared.anything then
    return value
  end
  copies = copies or {}
  if copies[value] then
    return copies[value]
  end
  local copy = {}
  copies[value] = copy
  for key, one in next, value do
    copy[copied(key, copies)] = copied(one, copies)
  end
  local meta = getmetatable(value)
  return type(meta) == "table" and setmetatable(copy, meta) or copy
end

shared.copied = copied

local OF_USERS = { id = true, iteration = true, scenario = true, store = true }
-- What other tools call what a user has.
local BY_OTHERS = {
  number = "vu.id", index = "vu.id", user_id = "vu.id", name = "vu.scenario", session = "vu.store", state = "vu.store", data = "vu.store",
}

local Vu = {
  __index = function(vu, name)
    return core.absent("the user", name, BY_OTHERS, OF_USERS)
  end,
}

-- What a scenario's function is given first: its user.
local function new_vu(id, iteration, scenario)
  return setmetatable({ id = id, iteration = iteration, scenario = scenario.name, store = {} }, Vu)
end

local function live(user)
  while true do
    local vu = user.vu
    vu.iteration = vu.iteration + 1
    user.before = user.not_ok
    user.run(vu, user.given)
    if user.tasks then
      shared.end_tasks(user)
    end
    local failed = (user.not_ok or 0) > (user.before or 0)
    if user.goes_on and not user.pacing and not failed then
      -- Only once, so that a function that never waits returns to the engine, too.
      user.goes_on, user.again = false, true
    else
      user = yield(ITERATED, user.pacing, failed) or user
    end
  end
end

-- The traceback of the error that has ended a coroutine: a group passes errors on, and has kept the traceback then.
local function traceback_of(user, thread, thrown)
  local kept = user.thrown == thrown and user.traceback
  user.thrown, user.traceback = nil, nil
  return kept or traceback(thread, tostring(shared.hinted(thrown)))
end

-- The operation for a dead coroutine: its error, unless it was raised to end it.
local function ended(user, again, thrown)
  local thread, task = user.thread, user.task
  user.thread = nil
  local problem = shared.wrong_text(thrown)
  if problem then
    return FAILED + again, problem, true
  elseif task then
    task.ended, task.problem = true, thrown ~= EXIT and traceback_of(user, thread, thrown) or nil
    return TASK_ENDED
  elseif thrown ~= EXIT then
    user.tasks = nil
    return FAILED + again, traceback_of(user, thread, thrown), false, user.pacing
  end
  problem = user.tasks and shared.problem_of_tasks(user)
  user.tasks = nil
  if problem then
    return FAILED + again, problem, false, user.pacing
  end
  return ITERATED + again, user.pacing, (user.not_ok or 0) > (user.before or 0)
end

-- The result of a step. For a dead coroutine, the error is in the operation's place.
local function settle(user, alive, operation, ...)
  current = nil
  local again = 0
  if user.again then
    user.again, again = false, AGAIN
  end
  if alive then
    -- A value that a function has yielded by itself is not an operation.
    return type(operation) == "number" and operation + again or operation, ...
  end
  return ended(user, again, operation)
end

-- Resumes a user with the result of its operation.
function shared.step(slot, now, ...)
  local user = users[slot]
  current, user.now, user.goes_on = user, now, false
  return settle(user, resume(user.thread, ...))
end

-- Resumes a user whose call was answered. `goes_on`: it may begin its next iteration without asking.
function shared.answered(slot, now, goes_on, ...)
  local user = users[slot]
  current, user.now, user.goes_on = user, now, goes_on
  return settle(user, resume(user.thread, ...))
end

-- Begins an iteration of a user: a new user (with its number and its scenario's place), or an existing one.
function shared.begin(slot, now, id, place)
  local user = users[slot]
  if not user then
    local scenario = scenarios[place]
    user = {
      vu = new_vu(id, 0, scenario),
      run = scenario.run,
      stop = scenario.stop,
      -- Each user has its own copy of the value of setup: no other user sees changes made to it.
      given = copied(given),
      paused = 0,
      goes_on = false,
      again = false,
    }
    users[slot] = user
  end
  current, user.now, user.goes_on = user, now, false
  local thread = user.thread
  if thread then
    return settle(user, resume(thread))
  end
  if spares > 0 then
    thread, spare[spares] = spare[spares], nil
    spares = spares - 1
  else
    thread = create(live)
  end
  user.thread = thread
  return settle(user, resume(thread, user))
end

-- Begins the last function of a user; nil if it has none. `between`: it stands between two iterations.
function shared.begin_stop(slot, now, between)
  local user = users[slot]
  if not user or not user.stop then
    return nil
  end
  local vu = user.vu
  user.run, user.stop, user.pacing = user.stop, nil, nil
  -- The last function is not an iteration.
  vu.iteration = vu.iteration - 1
  if not between then
    user.thread, user.tasks = nil, nil
  end
  return shared.begin(slot, now)
end

-- Forgets a user. `between`: it stands between two iterations.
function shared.forget(slot, between)
  local user = users[slot]
  users[slot] = nil
  if between and user and user.thread and spares < MOST_SPARE then
    spares = spares + 1
    spare[spares] = user.thread
  end
end

-- Wants an operation for whose end the user only waits, which is a pause for the groups that it is in.
function core.wait_for(user, ...)
  user.pausing = user.now
  yield(...)
  user.paused, user.pausing = user.paused + (user.now - user.pausing), nil
end

-- Ends the groups that a user is in. Returns them, outermost first, as number, time with pauses, time without.
function shared.leave_groups(slot, now)
  local user = users[slot]
  local groups, ended = user and user.groups, {}
  if groups then
    local paused = user.paused + (user.pausing and now - user.pausing or 0)
    for place, group in ipairs(groups) do
      local took = now - group.began
      ended[place * 3 - 2], ended[place * 3 - 1], ended[place * 3] = group.id, took, took - (paused - group.paused)
    end
    user.groups, user.group, user.pausing = nil, nil, nil
  end
  return ended
end

-- The value of setup, and the function that receives it.
function shared.given()
  return given
end

function shared.give(values)
  given = values
end

-- A coroutine that runs a scenario's function, for a rehearsal.
function shared.begin_rehearsal(place)
  local scenario = scenarios[place]
  local vu = new_vu(1, 1, scenario)
  local thread = create(function()
    scenario.run(vu, given)
    shared.rehearse_tasks()
    if scenario.stop then
      scenario.stop(vu, given)
    end
  end)
  current = { thread = thread, vu = vu, run = scenario.run, paused = 0, now = 0, goes_on = false, again = false }
  return thread
end

function shared.resume_rehearsal(thread, ...)
  return resume(thread, ...)
end

function shared.end_rehearsal()
  current = nil
end
