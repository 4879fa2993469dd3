-- Redis from Lua alone: its protocol (https://redis.io/docs/latest/develop/reference/protocol-spec/) is a function of 20 lines
-- that says piece by piece what an answer consists of. `redis-server --port 6379 --save ''` is what it is aimed at.

local brunt = require "brunt"
local redis = brunt.tcp { address = "127.0.0.1:6379" }

-- A command as an array of strings.
local function command(...)
  local parts = { "*" .. select("#", ...) .. "\r\n" }
  for _, part in ipairs { ... } do
    part = tostring(part)
    parts[#parts + 1] = "$" .. #part .. "\r\n" .. part .. "\r\n"
  end
  return table.concat(parts)
end

-- Reads an answer, whatever it is. What it returns is the call's `value`; nil with a problem fails the call as mismatch.
local function reply(reader)
  local line = reader:receive_line()
  local kind, rest = line:sub(1, 1), line:sub(2)
  if kind == "+" then
    return rest
  elseif kind == ":" then
    return tonumber(rest)
  elseif kind == "$" then
    local length = tonumber(rest)
    if length < 0 then
      return false
    end
    return (reader:receive_exactly(length + 2):sub(1, length))
  elseif kind == "*" then
    local items = {}
    for place = 1, tonumber(rest) do
      items[place] = reply(reader)
    end
    return items
  end
  return nil, line
end

local function call(...)
  return redis:request(command(...), reply, { name = (...) })
end

local cache = brunt.scenario("cache", function(vu)
  local key = "user:" .. vu.id
  call("SET", key, "größer\r\n")
  local got = call("GET", key)
  brunt.check(got, { ["is what was set"] = got.value == "größer\r\n" })
  local missing = call("GET", "nobody:" .. vu.id)
  brunt.check(missing, { ["is not there"] = missing.value == false })

  call("DEL", "list:" .. vu.id)
  for item = 1, 3 do
    call("RPUSH", "list:" .. vu.id, item)
  end
  local list = call("LRANGE", "list:" .. vu.id, 0, -1)
  brunt.check(list, { ["has three"] = #list.value == 3 and list.value[3] == "3" })
end)

-- A connection of one's own: what is published there comes without being asked for.
local listener = brunt.scenario("listener", function(vu)
  local socket = redis:connect()
  socket:request(command("SUBSCRIBE", "news:" .. vu.id), reply, { name = "SUBSCRIBE" })
  call("PUBLISH", "news:" .. vu.id, "hello")
  local message = socket:receive(reply, { name = "message", timeout = "2s" })
  brunt.check(message, { ["hello"] = message.value and message.value[3] == "hello" })
  socket:close()
end)

cache:inject { brunt.iterations_each(8, 25) }
listener:inject { brunt.iterations_each(4, 5) }

brunt.expect { checks = ">= 100%", error_rate = "== 0" }
