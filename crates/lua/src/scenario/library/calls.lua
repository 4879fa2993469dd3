-- Clients and their calls, and the names that calls are counted by.

local host, brunt, core, shared = ...

local yield = coroutine.yield
local wrong, raise, shown, seconds, waiting = core.wrong, core.raise, core.shown, core.seconds, core.waiting_user
local operations = host.operations
local CALL, START, WAIT, READ, LABEL = operations.CALL, operations.START, operations.WAIT, operations.READ, operations.LABEL
local PREPARE, CALL_PREPARED, CONTINUE = operations.PREPARE, operations.CALL_PREPARED, operations.CONTINUE

-- Numbers of calls' names. Those that scripts make up without end all become one, and are not remembered.
local labels, labelled = {}, 0
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

-- What the engine takes of any call's options: the label to count the call by, and its timeout, or nil.
local function counting(name, options)
  if not options then
    return label_of(name)
  end
  return label_of(options.name or name, options.tags), options.timeout and seconds("timeout", options.timeout)
end

shared.counting = counting

-- Calls ---------------------------------------------------------------------------------------------------------------

-- Counts a call that is not ok: the groups that its user is in are not, either.
function shared.count_not_ok()
  local user = core.user("a call")
  local home = user.home
  user.not_ok = (user.not_ok or 0) + 1
  if home then
    home.not_ok = (home.not_ok or 0) + 1
  end
end

-- What the engine says of a call that has ended: an answer, which carries its ticket as its first element. Four fields fit
-- in a table of half the size that five take.
local function answer_of(label, is_optional, ticket, status, ok, flags, failure, reason)
  if not ticket then
    -- In a rehearsal, what is wrong whatever comes.
    if ok then
      wrong(status, true)
    end
    raise(status)
  end
  if not ok then
    -- What need not come and did not is no call.
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

-- One call of a client. `options` may have `name`, `tags` and `timeout`, and `continues`, an answer that has led on to this call; what
-- stands behind it is the protocol's.
function core.call(client, name, options, ...)
  waiting("a call")
  local label, timeout
  if options then
    label, timeout = counting(name, options)
    if options.continues then
      yield(CONTINUE, options.continues[1])
    end
  else
    label = labels[name] or new_label(name, name)
  end
  return answer_of(label, false, yield(CALL, client, label, timeout, ...))
end

-- Calls that were prepared.
local prepared = 0
local MOST_PREPARED = 2000

-- Encodes a call that may be made often, from what `core.call` takes behind its options; gives a number for
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

-- As `core.call`, of what was prepared.
function core.call_prepared(number, name, options)
  waiting("a call")
  local label, timeout
  if options then
    label, timeout = counting(name, options)
  else
    label = labels[name] or new_label(name, name)
  end
  return answer_of(label, false, yield(CALL_PREPARED, number, label, timeout))
end

-- Begins a call; its answer is among those of the next `core.wait`.
function core.start(client, name, options, ...)
  local user = waiting("a call")
  local label, timeout = counting(name, options)
  local problem = yield(START, client, label, timeout, ...)
  if problem then
    -- What was begun before it must not be taken for answers of calls that are begun later.
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

-- Waits until all calls that were started have ended; gives their answers in that order.
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

-- Makes a client: `options` with those that are the engine's.
function core.client(name, options)
  if shared.is_running() then
    wrong("brunt." .. name .. " makes a client for the whole run: make it at the top of the script, outside the functions")
  end
  local problem, client = host.client(name, options or {})
  if problem then
    wrong(problem)
  end
  return client
end

-- User and password in the base that a client with this one gets; nil where it has none.
function core.base_user(base)
  local user = host.base_user(type(base) == "string" and base or nil)
  if user then
    return user[1], user[2]
  end
end

-- The base of a client, such as "http://127.0.0.1:8080", or nil.
function core.base(client)
  return host.base(client)
end
