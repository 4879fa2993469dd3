-- A scenario for brunt: users of a protocol that this script makes of bytes, how many come and when, and what must hold in the end.
--
--   brunt serve http                  the target that this one is written for, in another terminal
--   brunt check FILE                  what it does, and what is misspelt in it
--   brunt run --once FILE             one iteration, with every byte
--   brunt run FILE                    the whole load
--
-- All of it is Lua 5.1 (LuaJIT). The guide is docs/scenarios.md and docs/lua.md, or brunt help scenarios and brunt help lua. This one speaks as much of
-- HTTP as it takes to see how a protocol of bytes is read; put yours in its place.

local brunt = require "brunt"

local tcp = brunt.tcp { address = "127.0.0.1:8080" }

-- Reads one answer: a head that ends with an empty line, and a body as long as the head says. What it returns is the answer's value; nil and a
-- reason let the call fail.
local function answer(reader)
  local head = reader:receive_until("\r\n\r\n")
  local status = tonumber(head:match("^HTTP/1%.1 (%d+)"))
  local length = tonumber(head:match("[Cc]ontent%-[Ll]ength: (%d+)") or 0)
  local body = reader:receive_exactly(length)
  if status ~= 200 then
    return nil, "status " .. tostring(status)
  end
  return body
end

-- What one user does, once.
local visit = brunt.scenario("visit", function()
  local got = tcp:request("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", answer, { name = "get", timeout = "2s" })
  brunt.check(got, { ["has a body"] = got.value ~= nil and #got.value > 0 })
  -- Somebody who reads: between one and two seconds.
  brunt.pause(1, 2)
end)

-- Who comes when: users come at a rate, however long the target takes.
visit:inject {
  brunt.ramp_rate(1, 20, "10s"),
  brunt.rate(20, "20s"),
}

-- What must hold, else brunt exits with 1. `["get:p95"]` is about the calls with that name.
brunt.expect {
  error_rate = "< 1%",
  checks = "> 99%",
  ["get:p95"] = "< 100ms",
}
