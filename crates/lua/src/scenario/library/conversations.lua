-- Calls on connections that a user holds for itself, and calls with several answers.

local host, brunt, core, shared = ...

local yield = coroutine.yield
local waiting = core.waiting_user
local CONVERSE, RELEASE = host.operations.CONVERSE, host.operations.RELEASE
local reading = core.reading

-- The verdicts of a judge on an answer: it is the last of its call; the call goes on (with the protocol's values for
-- the next answer); or the call fails as mismatch (for this reason).
core.TAKEN, core.READS_ON, core.REJECTED = 0, 1, 2
local BROKEN = 3

local users = shared.users
-- The number of the last opened connection.
local handles = 0

local function settle(user, label, ...)
  user.judge = nil
  -- The option is of this call alone, however it ends.
  local is_optional = user.is_optional
  user.is_optional = nil
  local problem = user.problem
  if problem ~= nil then
    user.problem = nil
    error(problem, 0)
  end
  return shared.answer_of(label, is_optional, ...)
end

local function converse(way, client, name, options, judge, ...)
  local user = waiting("a call")
  local label, timeout = shared.counting(name, options)
  user.judge = judge
  local optional = options ~= nil and options.optional == true
  user.is_optional = optional or nil
  return settle(user, label, yield(CONVERSE, client, label, timeout, way, judge ~= nil, optional, ...))
end

-- One call of a client, as `core.call`. With the option `optional`, it counts only if it is answered, or fails
-- otherwise than by a timeout. `judge` is given the body of each answer, its flags and its status, and returns a
-- verdict; it cannot call or pause.
function core.converse(client, name, options, judge, ...)
  return converse(0, client, name, options, judge, ...)
end

-- One call on a new connection, which the user holds from then on. Returns the answer, and the number of the
-- connection.
function core.connect(client, name, options, ...)
  handles = handles + 1
  local handle = handles
  return converse(-handle, client, name, options, nil, ...), handle
end

-- One call on a connection that the user holds. `judge` as in `core.converse`, or nil.
function core.on(handle, client, name, options, judge, ...)
  return converse(handle, client, name, options, judge, ...)
end

-- Closes a connection that the user holds, and forgets the bytes received on it.
function core.release(handle)
  waiting("closing a connection")
  yield(RELEASE, handle)
end

local function judged(user, fine, verdict, ...)
  if fine then
    return verdict, ...
  end
  user.problem = verdict
  return BROKEN, tostring(verdict)
end

-- Shows an answer to a user's judge.
function shared.judge(slot, now, body, flags, status)
  local user = users[slot]
  user.now = now
  return judged(user, pcall(user.judge, body, flags, status))
end

-- Answers ---------------------------------------------------------------------------------------------------------------

-- A metatable for answers, whose parts are read on demand and kept: `body` and `timings`, with the methods of
-- `core.reading`, and the functions in `parts`, which take the answer. It may have the fields `also`, as a set.
-- An answer also has `keep`, which reads all of it, so that it stays what it is after the user's next call; it gives the answer.
function core.answer_type(parts, also)
  parts, also = parts or {}, also or {}
  local function keep(self)
    local _ = self.body, self.timings
    for name in pairs(parts) do
      _ = self[name]
    end
    return self
  end
  return {
    __index = function(self, key)
      local method = reading[key]
      if method then
        return method
      elseif key == "keep" then
        return keep
      end
      local value
      if parts[key] then
        value = parts[key](self)
      elseif key == "body" then
        value = self.error and "" or core.read(self, "body")
      elseif key == "timings" then
        value = core.read(self, "timings")
      else
        return core.absent_of_answer(key, parts, also)
      end
      if value ~= nil then
        rawset(self, key, value)
      end
      return value
    end,
  }
end

-- Bytes -----------------------------------------------------------------------------------------------------------------

local function check_text(whose, what, value)
  if type(value) ~= "string" then
    core.raise(whose .. ": " .. what .. " must be a string, not " .. core.shown(value))
  end
end

function brunt.pack(format, ...)
  check_text("brunt.pack", "the format", format)
  local problem, bytes = host.pack(format, ...)
  if problem then
    core.raise("brunt.pack: " .. problem)
  end
  return bytes
end

local function unpacked(problem, ...)
  if problem then
    core.raise("brunt.unpack: " .. problem)
  end
  return ...
end

-- A negative position counts from the end, as in Lua's own functions.
function brunt.unpack(format, bytes, from)
  check_text("brunt.unpack", "the format", format)
  check_text("brunt.unpack", "what is unpacked", bytes)
  if from == nil then
    from = 1
  elseif type(from) ~= "number" or from % 1 ~= 0 then
    core.raise("brunt.unpack: the byte to begin with must be a whole number, not " .. core.shown(from))
  elseif from < 0 then
    from = #bytes + from + 1
  end
  if from < 1 then
    core.raise("brunt.unpack: there is no byte before the first")
  end
  return unpacked(host.unpack(format, bytes, from))
end
