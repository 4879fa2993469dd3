-- The table `wrk` of scripts, as far as Lua suits it better than Rust: functions called for each request must be
-- compiled together with the script. The rest of it (scheme, host, port, path, lookup, connect, thread) is added from
-- outside.

local wrk = { method = "GET", headers = {} }

local tostring, type, next = tostring, type, next
local text = require("string.buffer").new(512)

-- Keeps the target's addresses that accept connections.
function wrk.resolve(host, service)
  local reachable = {}
  for _, address in ipairs(wrk.lookup(host, service)) do
    if wrk.connect(address) then
      reachable[#reachable + 1] = address
    end
  end
  wrk.addrs = reachable
end

-- In the main state, for each thread.
function wrk.setup(thread)
  local first = wrk.addrs and wrk.addrs[1]
  if first then
    thread.addr = first
  end
  if type(setup) == "function" then
    setup(thread)
  end
end

-- In the state of a thread, before its load begins.
function wrk.init(args)
  if not wrk.headers["Host"] then
    local host = wrk.host
    if host:find(":", 1, true) then
      host = "[" .. host .. "]"
    end
    wrk.headers["Host"] = wrk.port and host .. ":" .. wrk.port or host
  end
  if type(init) == "function" then
    init(args)
  end
  local request = wrk.format()
  function wrk.request()
    return request
  end
end

local function printable(value)
  local kind = type(value)
  return (kind == "string" or kind == "number") and value or tostring(value)
end

-- Writes header fields. The first fields are written without a loop: the compiler leaves a function with an inner loop
-- to the interpreter, and most requests have few fields.
local write_fields
do
  local one = "if name == nil then return end put(name, value) name, value = next(fields, name) "
  local all = "local put, next = ... return function(fields) local name, value = next(fields) "
    .. one:rep(12)
    .. "while name ~= nil do put(name, value) name, value = next(fields, name) end end"
  local function put(name, value)
    text:put(printable(name), ": ", printable(value), "\r\n")
  end
  write_fields = assert(loadstring(all, "=wrk"))(put, next)
end

-- A request; missing arguments come from the table. Given headers get the fields that every request needs, and keep
-- them.
function wrk.format(method, path, headers, body)
  headers = headers or wrk.headers
  body = body or wrk.body
  if not headers["Host"] then
    headers["Host"] = wrk.headers["Host"]
  end
  headers["Content-Length"] = body and string.len(body)
  text:reset()
  text:put(printable(method or wrk.method), " ", printable(path or wrk.path), " HTTP/1.1\r\n")
  write_fields(headers)
  text:put("\r\n", body or "")
  local request = text:get()
  return request
end

return wrk
