-- Actions of users besides calls: pauses, groups, checks, and their ends.

local host, brunt, core, shared = ...

-- Locals, because the interpreter looks a global up each time.
local next, pairs, rawget, type = next, pairs, rawget, type
local yield, traceback = coroutine.yield, debug.traceback
local log, random = math.log, math.random
local wrong, raise, shown, seconds, me = core.wrong, core.raise, core.shown, core.seconds, core.user
local check_options, waiting = core.check_options, core.waiting_user
local operations = host.operations
local PAUSE, END, STOP, MEET = operations.PAUSE, operations.END, operations.STOP, operations.MEET
local LOG = operations.LOG
local GROUP, GROUP_ENDED = operations.GROUP, operations.GROUP_ENDED
local null = host.null
local CHECK, CHECK_FAILED, CHECK_PASSED = operations.CHECK, operations.CHECK_FAILED, operations.CHECK_PASSED

local function wait(user, length)
  if length > 0 then
    core.wait_for(user, PAUSE, length)
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
  core.home("brunt.pacing").pacing = seconds("the pacing", length)
end

-- Ends the innermost groups of a user, down to the one at `depth`.
local function end_groups(user, depth, ok)
  local groups = user.groups
  for place = groups and #groups or 0, depth, -1 do
    local group = groups[place]
    groups[place] = nil
    local took = user.now - group.began
    local all_ok = ok and (user.not_ok or 0) <= group.not_ok
    yield(GROUP_ENDED, group.id, took, took - (user.paused - group.paused), all_ok)
  end
end

-- Keeps the traceback of an error that ends a group: the group raises the error again, and its own traceback would
-- begin there.
local function keep_traceback(thrown)
  local user = me("brunt.group")
  if user.thrown ~= thrown then
    user.thrown, user.traceback = thrown, traceback(tostring(shared.hinted(thrown)), 2)
  end
  return thrown
end

-- Ends a group, with the values that its function has returned or raised.
local function leave_group(user, depth, outer, fine, ...)
  end_groups(user, depth, fine)
  user.group = outer
  if not fine then
    error((...), 0)
  end
  return ...
end

function brunt.group(name, run, ...)
  local user = waiting("brunt.group")
  if type(name) ~= "string" or type(run) ~= "function" then
    core.wrong_call("brunt.group takes a name and a function, not " .. shown(name) .. " and " .. shown(run), name, run)
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
  groups[depth] = { id = id, began = user.now, paused = user.paused, not_ok = user.not_ok or 0 }
  user.group = path
  return leave_group(user, depth, outer, xpcall(run, keep_traceback, ...))
end

-- Numbers of checks by label (0 for none) and name; and the passes of each since they were last taken.
local checks, passes = {}, {}
-- Whether each passed check is traced.
local traced = false

-- The most remembered checks. If a script makes them up without end, further ones become one in the engine.
local MOST_CHECKS = 5000
local known_checks = 0

local function check_id(label, name, of, is_reason)
  of = of or checks
  local of_label = of[label]
  if not of_label then
    of_label = {}
    of[label] = of_label
  end
  waiting(is_reason and "answer:fail" or "brunt.check")
  shared.learn_caller()
  local id = yield(CHECK, label, tostring(name), is_reason)
  if known_checks < MOST_CHECKS then
    known_checks = known_checks + 1
    of_label[name] = id
  end
  return id
end

-- Counts a failure of the check with this number for `subject`; `reason` is the error that it raised, if any. The first
-- failed check marks an answer as not ok.
local function count_failed(id, subject, is_answer, label, reason)
  local first = false
  if is_answer and not rawget(subject, "failed") then
    rawset(subject, "failed", true)
    -- An answer that is not ok by its status is counted already.
    first = rawget(subject, "ok")
    if first then
      shared.count_not_ok()
    end
  end
  waiting("brunt.check")
  yield(CHECK_FAILED, id, is_answer and rawget(subject, 1) or 0, label, first, reason)
end

function brunt.check(subject, held_by_name)
  me("brunt.check")
  if type(held_by_name) ~= "table" then
    core.wrong_call("brunt.check takes an answer and a table of checks, not " .. shown(held_by_name), held_by_name)
  end
  local missing
  if next(held_by_name) == nil then
    shared.learn_caller()
    missing = shared.missing_checks(held_by_name, nil, 0)
    -- Otherwise nothing would be counted, and every threshold on the check would hold.
    if not missing then
      raise('the table of brunt.check is empty: a check whose value is nil is not in it. Write { name = value ~= nil }')
    end
  end
  local is_answer = type(subject) == "table" and rawget(subject, "label") ~= nil
  local label = is_answer and subject.label or 0
  local of_label, all, problem = checks[label], true, nil
  local count, last = 0, nil
  for name, held in pairs(held_by_name) do
    count, last = count + 1, name
    local reason
    if type(held) == "function" then
      local returned, value = pcall(held, subject)
      if not returned then
        -- The other checks are evaluated first, whatever the order of the table.
        reason, problem, value = tostring(value), problem or value, false
      end
      held = value
    end
    local id = of_label and of_label[name] or check_id(label, name)
    -- JSON's null is not nil in Lua, but still counts as no value.
    if held and held ~= null then
      passes[id] = (passes[id] or 0) + 1
      if traced then
        waiting("brunt.check")
        yield(CHECK_PASSED, id)
      end
    else
      all = false
      count_failed(id, subject, is_answer, label, reason)
    end
  end
  -- A check whose value is nil does not hold.
  missing = missing or last ~= nil and shared.missing_checks(held_by_name, last, count) or nil
  for place = 1, missing and #missing or 0 do
    local name = missing[place]
    all = false
    count_failed(checks[label] and checks[label][name] or check_id(label, name), subject, is_answer, label)
  end
  if problem ~= nil then
    error(problem, 0)
  end
  -- A check of a made-up answer proves nothing: a rehearsal goes on where users would.
  return all or shared.is_rehearsing()
end

-- Numbers of the reasons for which calls were failed, like those of checks.
local reasons = {}

-- Counts an answer as not ok, for `reason`.
function shared.fail_answer(answer, reason)
  local label = rawget(answer, "label")
  if type(reason) ~= "string" or reason == "" then
    core.wrong_call("answer:fail takes the reason, not " .. shown(reason), reason)
  end
  count_failed(reasons[label] and reasons[label][reason] or check_id(label, reason, reasons, true), answer, true, label)
end

-- Counts an answer as ok, whatever its status.
function shared.pass_answer(answer)
  if rawget(answer, "failed") then
    raise("answer:pass comes too late: a check of this answer has failed, or answer:fail was called")
  elseif rawget(answer, "error") then
    raise("answer:pass: there is no answer, the call failed (" .. tostring(answer.error) .. ")")
  elseif rawget(answer, "ok") or shared.is_rehearsing() then
    return
  end
  waiting("answer:pass")
  yield(operations.EXCUSE, rawget(answer, "label"), rawget(answer, "status"))
  rawset(answer, "ok", true)
  shared.count_ok()
end

-- Numbers of demands on answers, by label and kind, and by question for the first ones.
local demands = {}
local MOST_QUESTIONS = 20

-- Counts a demand on an answer as a check of its call. `kind` is the method (json, css, …), `question` its argument, if
-- it has one; the check holds if `was_there`.
function shared.count_demand(answer, kind, question, was_there)
  local label = rawget(answer, "label")
  if not label or shared.is_rehearsing() then
    return
  end
  local of_label = demands[label]
  if not of_label then
    of_label = {}
    demands[label] = of_label
  end
  local of_kind = of_label[kind]
  if not of_kind then
    of_kind = { count = 0, ids = {} }
    of_label[kind] = of_kind
  end
  local asked = question or ""
  local id = of_kind.ids[asked]
  if not id and of_kind.count >= MOST_QUESTIONS then
    asked = "(others)"
    id = of_kind.ids[asked]
  end
  if not id then
    if not shared.can_wait() then
      return
    end
    id = check_id(label, asked == "" and kind or kind .. " " .. asked)
    of_kind.count = of_kind.count + 1
    of_kind.ids[asked] = id
  end
  if was_there then
    passes[id] = (passes[id] or 0) + 1
  elseif shared.can_wait() then
    count_failed(id, answer, true, label)
  end
end

-- Counts a check made by the reader of an answer; it fails if there is a `reason`.
function shared.count_reading(answer, name, reason)
  local label = rawget(answer, "label")
  if not label then
    return
  end
  local id = checks[label] and checks[label][name] or check_id(label, name)
  if reason then
    count_failed(id, answer, true, label, reason)
  else
    passes[id] = (passes[id] or 0) + 1
  end
end

-- The collector's pause. In a small heap it marks the library again and again, which is a tenth of the work of a short iteration: there it
-- waits until the heap has grown by more. What a script sets itself stays.
local collect = collectgarbage
local SMALL_KB, PAUSE_OF_SMALL, PAUSE_OF_LARGE = 16384, 600, 200
local set = PAUSE_OF_LARGE

local function fit_pause()
  local wanted = collect("count") < SMALL_KB and PAUSE_OF_SMALL or PAUSE_OF_LARGE
  if set and wanted ~= set then
    local before = collect("setpause", wanted)
    if before ~= set then
      collect("setpause", before)
      wanted = nil
    end
    set = wanted
  end
end

fit_pause()

-- The passes of checks since the last call: number, count, number, count …
function shared.take_passes()
  fit_pause()
  local taken = {}
  for id, count in pairs(passes) do
    taken[#taken + 1], taken[#taken + 2] = id, count
    passes[id] = nil
  end
  return taken
end

local levels = { debug = true, info = true, warn = true, error = true }

-- Logs a text at one of four levels: to the file of --log, and with --once.
function brunt.log(level, ...)
  waiting("brunt.log")
  if not levels[level] then
    wrong("brunt.log takes a level (debug, info, warn or error) and what is to be said, not " .. shown(level), true)
  end
  local said = { ... }
  for place = 1, select("#", ...) do
    said[place] = tostring(said[place])
  end
  yield(LOG, level, table.concat(said, " "))
end

function brunt.fail(message)
  me("brunt.fail")
  raise(tostring(message or "brunt.fail was called"))
end

function brunt.stop_user()
  local user = waiting("brunt.stop_user")
  if user.task then
    wrong("brunt.stop_user is for the user itself, and not for a task of it: return, or brunt.exit_here() ends the task")
  end
  yield(END)
end

-- Ends the iteration here, as if its function had returned; in a task, the task.
function brunt.exit_here()
  local user = waiting("brunt.exit_here")
  end_groups(user, 1, true)
  user.group = nil
  error(shared.EXIT, 0)
end

-- Repeats `run` for a length of time: the last call that has begun by then is finished.
function brunt.during(length, run, ...)
  local user = waiting("brunt.during")
  if type(run) ~= "function" then
    wrong("brunt.during takes a length and a function, not " .. shown(run), true)
  end
  local ends = user.now + seconds("the length of brunt.during", length) * 1e9
  repeat
    local began = user.now
    run(...)
    if user.now == began then
      -- The function waits for nothing: time has to go on all the same.
      yield(PAUSE, 1e-6)
    end
  until user.now >= ends or shared.is_rehearsing()
end

-- Calls one of several functions, chosen by weight; returns its values.
function brunt.choose(choices)
  waiting("brunt.choose")
  local usage = "brunt.choose takes functions with their weights, such as brunt.choose { { browse, 90 }, { buy, 10 } }"
  if type(choices) ~= "table" or #choices == 0 then
    wrong(usage .. ", not " .. shown(choices), true)
  end
  core.check_weighted("brunt.choose", choices)
  local all = 0
  for _, choice in ipairs(choices) do
    if type(choice) ~= "table" or type(choice[1]) ~= "function" then
      wrong(usage, true)
    end
    all = all + core.number("a weight", choice[2], 0)
  end
  if all <= 0 then
    wrong("brunt.choose: a weight must be above 0", true)
  end
  if shared.is_rehearsing() then
    for _, choice in ipairs(choices) do
      choice[1]()
    end
    return shared.anything
  end
  local drawn, chosen = random() * all, #choices
  for place, choice in ipairs(choices) do
    drawn = drawn - choice[2]
    if drawn < 0 then
      chosen = place
      break
    end
  end
  if traced and #choices > 1 then
    yield(LOG, "info", "brunt.choose took choice " .. chosen .. " of " .. #choices .. "; another --seed may take another")
  end
  return choices[chosen][1]()
end

-- Whether a returned value is a call that has failed, or whose status is no success.
local function has_failed(first)
  return type(first) == "table" and rawget(first, "ok") == false
end

-- Repeats `run` until it succeeds, at most `times` times. It has failed when it raises an error, or when `when` returns
-- true for its values. Returns the values of the last try, or raises its error.
function brunt.retry(options, run, ...)
  local user = waiting("brunt.retry")
  check_options("brunt.retry", options, { times = true, pause = true, when = true })
  if type(options) ~= "table" or type(run) ~= "function" then
    wrong("brunt.retry takes options and a function, as in brunt.retry({ times = 3 }, function() … end)", true)
  end
  local times = core.number("brunt.retry: times", options.times or 3, 1)
  local length = seconds("brunt.retry: pause", options.pause or 0)
  local failed = options.when or has_failed
  if type(failed) ~= "function" then
    wrong("brunt.retry: when must be a function that is given what was returned, not " .. shown(failed), true)
  end
  for attempt = 1, times do
    local results = { n = 0 }
    local function keep(...)
      results = { n = select("#", ...), ... }
    end
    keep(pcall(run, ...))
    local fine, first = results[1], results[2]
    if not fine and (shared.wrong_text(first) or first == shared.EXIT) then
      error(first, 0)
    elseif fine and not failed(unpack(results, 2, results.n)) or fine and attempt == times then
      return unpack(results, 2, results.n)
    elseif attempt == times then
      error(first, 0)
    end
    if attempt < times then
      wait(user, length)
    end
  end
end

-- How long users wait for others who do not come, in seconds, if the script does not set a timeout.
local LONGEST_MEETING = 60

-- Waits until `users` users have come to the meeting of this name, on all threads together. Returns whether they have
-- come within `timeout`.
function brunt.rendezvous(name, users, timeout)
  local user = waiting("brunt.rendezvous")
  if type(name) ~= "string" then
    wrong("brunt.rendezvous takes a name and how many users meet, not " .. shown(name), true)
  end
  users = core.number("the users of brunt.rendezvous", users, 1)
  local length = seconds("the timeout of brunt.rendezvous", timeout or LONGEST_MEETING)
  local began = user.now
  core.wait_for(user, MEET, name, users, length)
  return user.now - began < length * 1e9
end

-- Ends the run, which has failed unless the option `ok` says that it did what it was to do. `{ ok = true, reason = "…" }` may stand alone.
function brunt.stop_run(reason, options)
  waiting("brunt.stop_run")
  if type(reason) == "table" and options == nil then
    reason, options = reason.reason, reason
  end
  if options ~= nil then
    core.check_options("brunt.stop_run", options, { ok = true, reason = true })
  end
  yield(STOP, reason ~= nil and tostring(reason) or "no reason given", options ~= nil and options.ok == true)
end

-- From now on each passed check is traced.
function shared.trace()
  traced = true
end
