-- `brunt.grpc`: services by their `.proto` files. `shop:call("shop.Cart/Add", { sku = "a1" })`.

local core = ...

local check_options, wrong = core.check_options, core.wrong

local Answer = core.answer_type()

local call_options = { name = true, tags = true, timeout = true, metadata = true }
local client_options = {
  base = true, timeout = true, connections = true, pool = true, pipeline = true, proto = true, proto_path = true,
  descriptor_set = true, reflection = true, metadata = true, compress = true, deadline = true, max_answer = true,
}

local Client = {}
Client.__index = Client

function Client:call(method, arguments, options)
  if type(method) ~= "string" then
    wrong("call takes a method's name first: shop:call(\"shop.Cart/Add\", { … })")
  end
  local engine, metadata = options, nil
  if options ~= nil then
    check_options(method, options, call_options)
    metadata = options.metadata
    if metadata ~= nil then
      engine = { name = options.name, tags = options.tags, timeout = options.timeout }
    end
  end
  local answer = setmetatable(core.call(self.client, method, engine, method, arguments, metadata), Answer)
  -- What came is read at once: it is kept over the calls that follow.
  if not answer.error then
    answer.value = core.read(answer, "value " .. method)
    if answer.status ~= 0 then
      answer.message = core.read(answer, "message")
      answer.details = core.read(answer, "details")
    end
  end
  return answer
end

return function(options)
  check_options("brunt.grpc", options, client_options)
  return setmetatable({ client = core.client("grpc", options) }, Client)
end
