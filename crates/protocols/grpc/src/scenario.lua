-- `brunt.grpc`: services by their `.proto` files. `shop:call("shop.Cart/Add", { sku = "a1" })`.

local core = ...

local check_options, wrong, raise = core.check_options, core.wrong, core.raise

local call_options = { name = true, tags = true, ok = true, timeout = true, metadata = true }
local receive_options = { timeout = true }
local client_options = {
  base = true, timeout = true, connections = true, pool = true, pipeline = true, proto = true, proto_path = true,
  descriptor_set = true, reflection = true, metadata = true, compress = true, deadline = true, max_answer = true,
  stall_timeout = true, ping_every = true, keep_alive = true, cert = true, key = true,
}

local Client, Stream = core.object(), core.object()
Client.__index = Client

-- A field of the answer's metadata, of its head or its trailers; nil if there is none.
local function metadata(self, name)
  if type(name) ~= "string" then
    wrong("metadata takes the name of a field: answer:metadata(\"x-id\")")
  end
  return self.error == nil and core.read(self, "metadata " .. name:lower()) or nil
end

local Answer = core.answer_type({
  metadata = function()
    return metadata
  end,
}, { value = true, message = true, details = true })

-- What of an answer is read at once, as it is kept over the calls that follow.
local function finished(answer)
  if not answer.error and answer.status ~= 0 then
    answer.message = core.read(answer, "message")
    answer.details = core.read(answer, "details")
  end
  return answer
end

-- What the engine wants of options, and the metadata among them.
local function split(whose, options)
  if options == nil then
    return nil, nil
  end
  check_options(whose, options, call_options)
  if options.metadata == nil then
    return options, nil
  end
  return { name = options.name, tags = options.tags, timeout = options.timeout }, options.metadata
end

function Client:call(method, arguments, options)
  if type(method) ~= "string" then
    wrong("call takes a method's name first: shop:call(\"shop.Cart/Add\", { … })")
  end
  local engine, fields = split(method, options)
  local answer = setmetatable(core.call(self.client, method, engine, method, arguments, fields), Answer)
  if not answer.error then
    answer.value = core.read(answer, "value " .. method)
  end
  return finished(answer)
end

-- Begins a call whose messages are sent and received one by one; gives its stream, which has what its answer has once it is over.
-- Where the client streams, the arguments are what it begins with, and may be left out; otherwise they are all that is sent.
function Client:stream(method, arguments, options)
  if type(method) ~= "string" then
    wrong("stream takes a method's name first: shop:stream(\"shop.Cart/Chat\")")
  end
  local engine, fields = split(method, options)
  local stream = core.stream(self.client, method, engine, method, arguments, fields, "open")
  stream.part = "one " .. method
  return setmetatable({ stream = stream, method = method, label = stream.label }, Stream)
end

Stream.__index = function(self, key)
  local own = Stream[key]
  if own then
    return own
  end
  local answer = rawget(self, "answer")
  if answer then
    return answer[key]
  end
end

local function ended(stream, answer)
  stream.answer = finished(setmetatable(answer, Answer))
  stream[1] = answer[1]
end

-- Sends a message; whether the call still went on.
function Stream:send(message)
  if rawget(self, "is_finished") then
    raise(self.method .. ": send after finish, which says that nothing more is sent")
  end
  return rawget(self, "answer") == nil and core.say(self.stream, self.method, message, nil, "more")
end

-- Says that nothing more will be sent (half-close). What comes can still be received.
function Stream:finish()
  if not rawget(self, "is_finished") and not rawget(self, "answer") then
    self.is_finished = true
    core.say(self.stream, self.method, nil, nil, "finish")
  end
  return self
end

-- Waits for the next message: nil once the call is over, nil and "timeout" if none has come in time.
function Stream:receive(options)
  if rawget(self, "answer") then
    return nil
  end
  if options ~= nil then
    check_options("receive", options, receive_options)
  end
  local message, answer = core.next_message(self.stream, options and options.timeout)
  if message ~= nil then
    return message
  elseif answer then
    ended(self, answer)
    return nil
  elseif rawget(self, "answer") then
    -- Another task has closed it meanwhile.
    return nil
  end
  return nil, "timeout"
end

-- The next message, or nil at the end: what `for message in stream do` asks for.
function Stream:next()
  return (self:receive())
end

Stream.__call = Stream.next

-- Does `run` with each message until the call is over, beside what its user does.
function Stream:on_message(run)
  if type(run) ~= "function" then
    wrong("on_message takes a function, not " .. core.shown(run), true)
  end
  return require("brunt").spawn(function()
    repeat
      local message = self:next()
      if message ~= nil then
        run(message)
      end
    until message == nil or core.is_rehearsing()
  end)
end

-- Cancels a call that goes on: what came counts.
function Stream:close()
  if not rawget(self, "answer") then
    ended(self, core.leave(self.stream))
  end
  return self
end

core.with_colon("grpc", Client)
core.with_colon("stream", Stream)

return function(options)
  check_options("brunt.grpc", options, client_options)
  return setmetatable({ client = core.client("grpc", options) }, Client)
end
