-- `brunt.ws`: conversations over WebSocket. The engine sends and receives frames; what a user says and waits for is here.

local core = ...

local wrong, check_options = core.wrong, core.check_options

local Answer = core.answer_type({
  -- Whether a message was text, and not binary.
  text = function(self)
    return self.flags % 2 == 1
  end,
}, { label = true, tasks = true, is_closed = true })

local Socket, Client = core.object(), core.object()
Client.__index = Client

local call_options = { name = true, tags = true, timeout = true }
local connect_options = { name = true, tags = true, ok = true, timeout = true, headers = true }
local send_options = { name = true, tags = true, timeout = true, binary = true }
local receive_options = { name = true, tags = true, timeout = true, match = true, optional = true }
local listen_options = { name = true, tags = true, match = true }
local request_options = { name = true, tags = true, timeout = true, binary = true, match = true }
local ping_options = { name = true, tags = true, timeout = true }
local close_options = { name = true, tags = true, timeout = true, code = true, reason = true }

local function checked(whose, options, known)
  if options ~= nil then
    check_options(whose, options, known)
  end
  return options
end

-- Connects, to the base or to a path or URL; the result is a socket, which is the handshake's answer as well.
function Client:connect(url, options)
  if type(url) == "table" and options == nil then
    url, options = nil, url
  end
  checked("connect", options, connect_options)
  local answer, handle = core.connect(self.client, "connect", options, "connect", url, options and options.headers)
  answer.handle, answer.client = handle, self.client
  return setmetatable(answer, Socket)
end

Socket.__index = function(self, key)
  if Socket[key] then
    return Socket[key]
  end
  return Answer.__index(self, key)
end

-- What a message must be to be taken: a function of it, or a text that it contains.
local function judge_of(whose, match, further)
  if match == nil then
    return nil
  end
  if type(match) == "string" then
    local wanted = match
    match = function(message)
      return message.body:find(wanted, 1, true)
    end
  elseif type(match) ~= "function" then
    wrong(whose .. ": match must be a function of a message, or a text that it contains, not a " .. type(match))
  end
  return function(body, flags)
    local message = setmetatable({ body = body, flags = flags, status = 0, ok = true }, Answer)
    if match(message) then
      return core.TAKEN
    end
    return core.READS_ON, further or "receive on"
  end
end

local function on(socket, name, options, judge, ...)
  local answer = core.on(socket.handle, socket.client, name, options, judge, ...)
  if answer.error == "closed" then
    socket.is_closed = true
  end
  return setmetatable(answer, Answer)
end

-- Refuses what is no message. `what` names the method.
local function check_message(what, message)
  if core.text_of(message) == nil then
    local advice = type(message) == "table" and ": write socket:" .. what .. "(brunt.json.encode(value)) for JSON" or ""
    core.misused(what .. ": a message is a text, not " .. core.shown(message) .. advice, message)
  end
  core.check_digits("the message", message)
end

-- Sends a message; the call ends when the operating system has taken it.
function Socket:send(message, options)
  checked("send", options, send_options)
  check_message("send", message)
  return on(self, "send", options, nil, "send", message, options and options.binary)
end

-- The same for a call that waits for a message, which is read at once: it is kept over the calls that follow.
local function receive(...)
  local message = on(...)
  message.body = message.error and "" or core.read(message, "body")
  return message
end

-- Waits for a message: the next, or the next that matches. Those before it that do not can be received later. One that is optional
-- counts for nothing if it does not come in time.
function Socket:receive(options)
  checked("receive", options, receive_options)
  return receive(self, "receive", options, judge_of("receive", options and options.match), "receive")
end

-- Sends a message and waits for one that comes after it: the next, or the next that matches. Those that do not can be
-- received later.
function Socket:request(message, options)
  checked("request", options, request_options)
  check_message("request", message)
  local judge = judge_of("request", options and options.match)
  return receive(self, "request", options, judge, "request", message, options and options.binary)
end

-- Begins a task of this socket, which ends with it.
local function attend(socket, run)
  local task = require("brunt").spawn(run)
  socket.tasks = socket.tasks or {}
  socket.tasks[#socket.tasks + 1] = task
  return task
end

local function check_function(whose, run)
  if type(run) ~= "function" then
    wrong(whose .. " takes a function, not " .. core.shown(run), true)
  end
end

-- Does `run` with each message that no `receive` or `request` takes, until the connection ends, beside what its user does. Those that match, if
-- `match` says which.
function Socket:on_message(run, options)
  check_function("on_message", run)
  options = checked("on_message", options, listen_options) or {}
  local each = { name = options.name, tags = options.tags, optional = true }
  local judge = judge_of("on_message", options.match, "listen on")
  return attend(self, function()
    repeat
      local message = receive(self, "message", each, judge, "listen")
      if not message.error then
        run(message)
      end
    until self.is_closed or message.error and message.error ~= "timeout" or core.is_rehearsing()
  end)
end

-- Does `run` each time that so long has passed, until the connection ends, beside what its user does.
function Socket:every(interval, run)
  interval = core.seconds("every", interval)
  if interval <= 0 then
    wrong("every takes a time above 0", true)
  end
  check_function("every", run)
  return attend(self, function()
    local user = core.user("every")
    local due = user.now
    repeat
      due = due + interval * 1e9
      require("brunt").pause(math.max(0, due - user.now) / 1e9)
      run(self)
    until self.is_closed or core.is_rehearsing()
  end)
end

-- Sends a ping, and waits for its pong.
function Socket:ping(options)
  return on(self, "ping", checked("ping", options, ping_options), nil, "ping")
end

-- Says goodbye, and waits until the server has. What listens on the socket, or comes back to it, ends.
function Socket:close(options)
  options = checked("close", options, close_options) or {}
  self.is_closed = true
  local own = core.user("close").task
  for _, task in ipairs(self.tasks or {}) do
    if task ~= own then
      task:cancel()
    end
  end
  local answer = on(self, "close", options, nil, "close", options.code, options.reason)
  core.release(self.handle)
  return answer
end

core.with_colon("socket", Socket)
core.with_colon("ws", Client)

local known = { base = true, headers = true, subprotocols = true, deflate = true, timeout = true, cert = true, key = true }

return function(options)
  if type(options) == "string" then
    options = { base = options }
  end
  check_options("brunt.ws", options, known)
  return setmetatable({ client = core.client("ws", options) }, Client)
end
