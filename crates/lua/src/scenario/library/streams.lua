-- Streams: calls whose answers come as messages, which a user takes one by one.

local host, brunt, core, shared = ...

local yield = coroutine.yield
local raise, seconds, waiting = core.raise, core.seconds, core.waiting_user
local STREAM, NEXT, LEAVE, SAY = host.operations.STREAM, host.operations.NEXT, host.operations.LEAVE, host.operations.SAY

-- Begins a call whose answer comes as messages; returns its stream. `options` as in `core.call`.
function core.stream(client, name, options, ...)
  waiting("a call")
  local label, timeout = shared.counting(name, options)
  local ticket, problem, certain = yield(STREAM, client, label, timeout, ...)
  if not ticket then
    -- In a rehearsal: an error that any answer would have.
    if certain then
      core.wrong(problem, true)
    end
    raise(problem)
  end
  return { ticket = ticket, label = label, client = client }
end

-- A message, or nil and the answer of a call that has ended.
local function told(stream, first, second, ...)
  if first == true then
    return second
  elseif first == false then
    raise(second)
  end
  return nil, shared.answer_of(stream.label, false, first, second, ...)
end

-- Waits for the next message of a stream. Returns nil and the answer at the end of the stream, and nil alone if no
-- message came within `timeout`.
function core.next_message(stream, timeout)
  waiting("a message")
  return told(stream, yield(NEXT, stream.ticket, stream.part, timeout and seconds("timeout", timeout)))
end

-- Sends more on the call of a stream; returns whether the call still goes on.
function core.say(stream, ...)
  waiting("saying something")
  local goes_on, problem, certain = yield(SAY, stream.ticket, stream.client, nil, ...)
  if goes_on == nil then
    -- In a rehearsal: an error that any answer would have.
    if certain then
      core.wrong(problem, true)
    end
    raise(problem)
  end
  return goes_on == 1
end

-- Leaves a stream, whose further messages are not wanted; returns the answer.
function core.leave(stream)
  waiting("leaving a stream")
  local _, answer = told(stream, yield(LEAVE, stream.ticket))
  return answer
end
