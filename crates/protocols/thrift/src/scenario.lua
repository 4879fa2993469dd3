-- `brunt.thrift`: services by their IDL. A client has the service's methods: `shop:price { sku = "a1" }`.

local core = ...

local check_options, wrong = core.check_options, core.wrong

local Answer = core.answer_type(nil, { value = true, exception = true })

local call_options = { name = true, tags = true, ok = true, timeout = true }
local engine_options = { address = true, timeout = true, connections = true, pool = true, pipeline = true,
  keep_alive = true, cert = true, key = true }
local own_options = {
  idl = true, idl_path = true, service = true, protocol = true, transport = true, multiplexed = true, max_answer = true,
}

-- Methods of clients, by client, made when they are called for the first time.
local function method(client, name)
  return function(self, arguments, options)
    if type(self) ~= "table" then
      wrong("call methods with a colon: shop:" .. name .. " { … }")
    end
    if options ~= nil then
      check_options(name, options, call_options)
    end
    local answer = setmetatable(core.call(client, name, options, name, arguments), Answer)
    -- What the method returned, or the declared exception that it threw (its name and what it holds), is read at once: it
    -- is kept over the calls that follow.
    if not answer.error then
      if answer.status == 0 then
        answer.value = core.read(answer, "value")
      else
        answer.exception = core.read(answer, "exception")
      end
    end
    return answer
  end
end

return function(options)
  local known, passed = {}, {}
  for _, set in ipairs({ engine_options, own_options }) do
    for name in pairs(set) do
      known[name] = true
    end
  end
  check_options("brunt.thrift", options, known)
  for name, value in pairs(options or {}) do
    passed[name == "address" and "base" or name] = value
  end
  local client = core.client("thrift", passed)
  return setmetatable({}, {
    __index = function(self, name)
      local made = method(client, name)
      rawset(self, name, made)
      return made
    end,
  })
end
