-- Clients and their calls, and the names by which calls are counted.

local host, brunt, core, shared = ...

local yield = coroutine.yield
local wrong, raise, shown, seconds, waiting = core.wrong, core.raise, core.shown, core.seconds, core.waiting_user
local operations = host.operations
local CALL, START, WAIT, READ, LABEL = operations.CALL, operations.START, operations.WAIT, operations.READ, operations.LABEL
local PREPARE, CALL_PREPARED, CONTINUE = operations.PREPARE, operations.CALL_PREPARED, operations.CONTINUE

-- Numbers of calls' names. If a script makes names up without end, further ones become one name and are not remembered.
local labels, labelled = {}, 0
local MOST_LABELS = 2000

-- Whether thresholds tell calls apart by the scenario and the group of their user.
local by_place = host.by_place

-- The scenario and the group of the user that calls; a task without groups is in those of its user.
local function place_of_user()
  local user = core.user("a call")
  local home = user.home or user
  return home.vu.scenario, user.group or home.group or ""
end

-- The label remembered under `key`, or a new one; `...` are its tags.
local function placed_label(key, name, ok, ...)
  local scenario, group
  if by_place then
    scenario, group = place_of_user()
    key = key .. "\1" .. scenario .. "\1" .. group
  end
  local label = labels[key]
  if label then
    return label
  end
  label = yield(LABEL, name, scenario, group, ok, ...)
  if labelled < MOST_LABELS then
    labelled = labelled + 1
    labels[key] = label
  end
  return label
end

-- The statuses that a call expects, as a text: { 200, 404 } becomes "200,404".
local function expected(ok)
  local text = ok
  if type(ok) == "table" then
    local all = {}
    for place, one in ipairs(ok) do
      all[place] = tostring(one)
    end
    text = table.concat(all, ",")
  elseif type(ok) == "number" then
    text = tostring(ok)
  end
  local problem = type(text) ~= "string" and "" or host.ok_status(text)
  if problem then
    wrong("ok takes the statuses that are a success, such as { 200, 404 } or \"2xx,404\", not " .. shown(ok), true)
  end
  return text
end

local function tagged_label(name, tags, ok)
  if tags == nil then
    tags = {}
  elseif type(tags) ~= "table" then
    wrong("tags must be a table such as { plan = \"pro\" }, not " .. shown(tags))
  end
  local texts = {}
  for key, value in pairs(tags) do
    texts[#texts + 1] = tostring(key) .. "=" .. tostring(value)
  end
  table.sort(texts)
  local key = name .. "\0" .. table.concat(texts, "\0")
  if ok ~= nil then
    ok = expected(ok)
    key = key .. "\2" .. ok
  end
  return not by_place and labels[key] or placed_label(key, name, ok, unpack(texts))
end

-- The number of a name, with these tags, if any, for calls that expect these statuses.
local function label_of(name, tags, ok)
  if type(name) ~= "string" then
    -- In a rehearsal it may be made up, and has a text of its own.
    local text = core.text_of(name) or shared.made_up(name) and tostring(name)
    name = text or wrong("name must be a text, not " .. shown(name), true)
  end
  if tags or ok ~= nil then
    return tagged_label(name, tags, ok)
  end
  return not by_place and labels[name] or placed_label(name, name)
end

-- The engine's options of any call: the label by which it is counted, and its timeout or nil.
local function counting(name, options)
  if not options then
    return label_of(name)
  end
  return label_of(options.name or name, options.tags, options.ok), options.timeout and seconds("timeout", options.timeout)
end

shared.counting = counting

-- Calls ---------------------------------------------------------------------------------------------------------------

-- Counts a call that is not ok: the user's current groups are not ok, either.
function shared.count_not_ok()
  local user = core.user("a call")
  local home = user.home
  user.not_ok = (user.not_ok or 0) + 1
  if home then
    home.not_ok = (home.not_ok or 0) + 1
  end
end

-- Takes back that a call was counted as not ok.
function shared.count_ok()
  local user = core.user("a call")
  local home = user.home
  user.not_ok = (user.not_ok or 0) - 1
  if home then
    home.not_ok = (home.not_ok or 0) - 1
  end
end

-- The answer of a call that has ended, from the values that the engine returns. It carries its ticket as its first
-- element. A table of four fields takes half as much memory as one of five.
local function answer_of(label, is_optional, ticket, status, ok, flags, failure, reason)
  if not ticket then
    -- In a rehearsal: an error that any answer would have.
    if ok then
      wrong(status, true)
    end
    raise(status)
  end
  if not ok then
    -- An optional call without an answer is not counted.
    if not (is_optional and failure == "timeout") then
      shared.count_not_ok()
    end
  end
  if failure then
    return { ticket, status = 0, ok = false, flags = 0, label = label, error = failure, reason = reason }
  end
  return { ticket, status = status, ok = ok, flags = flags, label = label }
end

shared.answer_of = answer_of

-- One call of a client. `options` may have `name`, `tags` and `timeout`, and `continues`, an answer that has led on to
-- this call. The arguments after it are the protocol's.
function core.call(client, name, options, ...)
  waiting("a call")
  local label, timeout
  if options then
    label, timeout = counting(name, options)
    if options.continues then
      yield(CONTINUE, options.continues[1])
    end
  else
    label = label_of(name)
  end
  return answer_of(label, false, yield(CALL, client, label, timeout, ...))
end

-- Prepared calls.
local prepared = 0
local MOST_PREPARED = 2000

-- Encodes a call for repeated use, from the arguments that `core.call` takes after its options. Returns a number for
-- `core.call_prepared`, or nil when there are too many.
function core.prepare(client, ...)
  waiting("a call")
  if prepared >= MOST_PREPARED then
    return nil
  end
  local number, problem = yield(PREPARE, client, nil, nil, ...)
  if not number then
    raise(problem)
  end
  prepared = prepared + 1
  return number
end

-- Makes a prepared call, as `core.call` does.
function core.call_prepared(number, name, options)
  waiting("a call")
  local label, timeout
  if options then
    label, timeout = counting(name, options)
  else
    label = label_of(name)
  end
  return answer_of(label, false, yield(CALL_PREPARED, number, label, timeout))
end

-- Begins a call; the next `core.wait` returns its answer.
function core.start(client, name, options, ...)
  local user = waiting("a call")
  local label, timeout = counting(name, options)
  local problem = yield(START, client, label, timeout, ...)
  if problem then
    -- Earlier calls must not be taken for those that are begun later.
    core.wait()
    raise(problem)
  end
  local started = user.started
  if not started then
    started = {}
    user.started = started
  end
  started[#started + 1] = label
end

-- Waits until all started calls have ended; returns their answers in the order of the starts.
function core.wait()
  local user = waiting("waiting for calls")
  local started = user.started or {}
  user.started = nil
  local answers = {}
  if #started > 0 then
    local results = yield(WAIT)
    for place, label in ipairs(started) do
      local result = results[place]
      answers[place] = answer_of(label, false, unpack(result, 1, 6))
    end
  end
  return answers
end

-- Reads a part of an answer.
function core.read(answer, what)
  waiting("reading an answer")
  local found, value = yield(READ, answer[1], what)
  if not found then
    raise(value)
  end
  return value
end

-- Makes a client; `options` includes those of the engine.
function core.client(name, options)
  if shared.is_running() then
    wrong("brunt." .. name .. " makes a client for the whole run: make it at the top of the script, outside the functions")
  end
  for _, option in ipairs({ "timeout", "stall_timeout", "deadline" }) do
    if type(options) == "table" and type(options[option]) == "number" then
      seconds(option, options[option])
    end
  end
  local problem, client = host.client(name, options or {})
  if problem then
    wrong(problem)
  end
  return client
end

-- The user and the password in the base URL of a client with this one in the script; nil where it has none.
function core.base_user(base)
  local user = host.base_user(type(base) == "string" and base or nil)
  if user then
    return user[1], user[2]
  end
end

-- The base URL of a client, such as "http://127.0.0.1:8080", or nil.
function core.base(client)
  return host.base(client)
end
