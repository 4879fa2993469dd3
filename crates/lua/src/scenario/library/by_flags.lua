-- `brunt.SCHEME` of a protocol without its own library: options and calls have the names of its flags.

local core, name = ...

local check_options = core.check_options

local Answer = core.answer_type({
  -- The part of the answer before the body.
  head = function(self)
    return self.error and "" or core.read(self, "head")
  end,
})

local call_options = { name = true, tags = true, ok = true, timeout = true }

local Client = core.object()
Client.__index = Client

-- One call, by the protocol's flags: missing options come from the client.
function Client:call(options, of_call)
  if of_call ~= nil then
    check_options("call", of_call, call_options)
  end
  return setmetatable(core.call(self.client, "call", of_call, options), Answer)
end

core.with_colon(name, Client)

return function(options)
  if type(options) == "string" then
    options = { address = options }
  end
  local passed = {}
  for key, value in pairs(options or {}) do
    passed[key == "address" and "base" or key] = value
  end
  return setmetatable({ client = core.client(name, passed) }, Client)
end
