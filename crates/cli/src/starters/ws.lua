-- A scenario for brunt: users who talk over WebSocket, how many come and when, and what must hold in the end.
--
--   brunt serve ws                    the target that this one is written for, in another terminal
--   brunt check FILE                  what it does, and what is misspelt in it
--   brunt run --once FILE             one iteration, with every message
--   brunt run FILE                    the whole load
--
-- All of it is Lua 5.1 (LuaJIT). The guide is docs/scenarios.md and docs/lua.md, or brunt help scenarios and brunt help lua.

local brunt = require "brunt"

-- Where users connect to; `brunt run --base-url URL` takes another place.
local ws = brunt.ws { base = "ws://127.0.0.1:8081/" }

-- What one user does, once.
local talk = brunt.scenario("talk", function(vu)
  -- A connection of its own: the handshake is a call. Names are what results count by.
  local socket = ws:connect("/", { name = "connect" })
  for number = 1, 3 do
    local text = "hello " .. number .. " from " .. vu.id
    -- A message and the one that comes back, as one call; the built-in target returns each.
    local echo = socket:request(text, { match = text, name = "echo", timeout = "2s" })
    brunt.check(echo, { ["the same text"] = echo.body == text })
    -- Somebody who types: between one and two seconds.
    brunt.pause(1, 2)
  end
  socket:close()
end)

-- Who comes when: users come at a rate, however long the target takes.
talk:inject {
  brunt.ramp_rate(1, 20, "10s"),
  brunt.rate(20, "20s"),
}

-- What must hold, else brunt exits with 1. `["echo:p95"]` is about the calls with that name.
brunt.expect {
  error_rate = "< 1%",
  checks = "> 99%",
  ["echo:p95"] = "< 100ms",
}
