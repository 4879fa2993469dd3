-- `brunt.tcp`: bytes over TCP. The engine sends and receives them; what they mean is the script's.

local core = ...

local wrong, check_options = core.wrong, core.check_options
local create, resume, status, yield = coroutine.create, coroutine.resume, coroutine.status, coroutine.yield

local Answer = core.answer_type(nil, { value = true })

local call_options = { name = true, tags = true, timeout = true }
local receive_options = { name = true, tags = true, timeout = true, optional = true }

local function checked(whose, options, known)
  if options ~= nil then
    check_options(whose, options, known or call_options)
  end
  return options
end

-- Readers: functions that say piece by piece what an answer consists of -------------------------------------------------

local Reader = core.object()
Reader.__index = Reader

-- Exactly so many bytes.
function Reader:receive_exactly(count)
  return yield("exactly", count)
end

-- Up to this text, which is left out.
function Reader:receive_until(text)
  return yield("until", text)
end

-- Up to the end of the line, which is left out.
function Reader:receive_line()
  local line = yield("until", "\n")
  return line:sub(-1) == "\r" and line:sub(1, -2) or line
end

-- As many bytes as the length before them says, which has 1, 2 or 4 bytes ("2le" and "4le" for the lowest first).
function Reader:receive_framed(prefix)
  return yield("framed", prefix)
end

-- Until the server closes its side.
function Reader:receive_rest()
  return yield("rest")
end

local reader = setmetatable({}, Reader)

-- How a simple answer ends, as a reader.
local function reader_of(what)
  if type(what) == "function" then
    return what
  elseif type(what) == "string" then
    return function(from)
      return from:receive_until(what)
    end
  elseif type(what) == "number" then
    return function(from)
      return from:receive_exactly(what)
    end
  end
  wrong("expected what the answer is: a function that reads it, the text that ends it, or how many bytes it has, not a "
    .. type(what))
end

-- Goes on with a reader. `result` gets what it returns.
local function go_on(thread, result, alive, how, by)
  if not alive then
    error(how, 0)
  end
  if status(thread) == "dead" then
    result.value = how
    if how == nil and by ~= nil then
      return core.REJECTED, tostring(by)
    end
    return core.TAKEN
  end
  return core.READS_ON, nil, how, by
end

-- A call that sends bytes and reads its answer piece by piece. `call` is core.converse or core.on, up to its judge.
local function exchange(bytes, what, call)
  local thread, result = create(reader_of(what)), {}
  local verdict, _, how, by = go_on(thread, result, resume(thread, reader))
  if verdict ~= core.READS_ON then
    wrong("the reader of an answer receives nothing: it must call one of its receive_ functions")
  end
  local answer = call(function(body)
    return go_on(thread, result, resume(thread, body))
  end, bytes, how, by)
  answer.value = result.value
  return setmetatable(answer, Answer)
end

-- Sockets ---------------------------------------------------------------------------------------------------------------

local Socket = core.object()
Socket.__index = Socket

local function on(socket, name, options, ...)
  return setmetatable(core.on(socket.handle, socket.client, name, options, nil, ...), Answer)
end

-- What is received is read at once: it is kept over the calls that follow.
local function receive(socket, options, ...)
  local answer = on(socket, "receive", options, nil, ...)
  answer.body = answer.error and "" or core.read(answer, "body")
  return answer
end

-- Refuses what is no bytes. `what` names the method.
local function check_bytes(what, bytes)
  if core.text_of(bytes) == nil then
    core.misused(what .. " takes bytes as a text, not " .. core.shown(bytes), bytes)
  end
  return bytes
end

-- Sends bytes; the call ends when the operating system has taken them.
function Socket:send(bytes, options)
  return on(self, "send", checked("send", options), check_bytes("send", bytes))
end

-- Sends bytes and reads their answer, as one call.
function Socket:request(bytes, what, options)
  checked("request", options)
  return exchange(check_bytes("request", bytes), what, function(judge, ...)
    return core.on(self.handle, self.client, "request", options, judge, ...)
  end)
end

-- Reads an answer that nobody has asked for, as one call. One that is optional counts for nothing if it does not come in
-- time.
function Socket:receive(what, options)
  checked("receive", options, receive_options)
  return exchange(nil, what, function(judge, ...)
    return core.on(self.handle, self.client, "receive", options, judge, ...)
  end)
end

for _, name in ipairs({ "receive_exactly", "receive_until", "receive_framed" }) do
  local how = name:match("_(.*)")
  Socket[name] = function(self, by, options)
    return receive(self, checked(name, options, receive_options), how, by)
  end
end

function Socket:receive_line(options)
  local answer = self:receive(reader.receive_line, options)
  answer.body = answer.value or ""
  return answer
end

function Socket:receive_rest(options)
  return receive(self, checked("receive_rest", options, receive_options), "rest")
end

-- Closes this side: the server sees the end of what is sent, and may still answer.
function Socket:finish(options)
  return on(self, "finish", checked("finish", options), nil, "finish")
end

function Socket:close()
  core.release(self.handle)
end

-- Clients ---------------------------------------------------------------------------------------------------------------

local Client = core.object()
Client.__index = Client

-- Connects; the result is a socket, with `ok`, `error` and `reason` of the attempt.
function Client:connect(options)
  local answer, handle = core.connect(self.client, "connect", checked("connect", options))
  answer.handle, answer.client = handle, self.client
  return setmetatable(answer, Socket)
end

-- Sends bytes and reads their answer, as one call, on any connection of the user's.
function Client:request(bytes, what, options)
  checked("request", options)
  return exchange(check_bytes("request", bytes), what, function(judge, ...)
    return core.converse(self.client, "request", options, judge, ...)
  end)
end

core.with_colon("socket", Socket)
core.with_colon("tcp", Client)

local known = { address = true, greeting = true, timeout = true, connections = true, pool = true, pipeline = true,
  keep_alive = true }

return function(options)
  if type(options) == "string" then
    options = { address = options }
  end
  check_options("brunt.tcp", options, known)
  local passed = {}
  for name, value in pairs(options or {}) do
    passed[name == "address" and "base" or name] = value
  end
  return setmetatable({ client = core.client("tcp", passed) }, Client)
end
