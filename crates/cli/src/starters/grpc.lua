-- A scenario for brunt: users of a gRPC service, how many come and when, and what must hold in the end.
--
--   brunt serve grpc                  the target that this one is written for, in another terminal
--   brunt check FILE                  what it does, and what is misspelt in it
--   brunt run --once FILE             one iteration, with every call and answer
--   brunt run FILE                    the whole load
--
-- All of it is Lua 5.1 (LuaJIT). The guide is docs/rpc.md, or brunt help rpc.

local brunt = require "brunt"

-- Where calls go, and the schema beside this file. Without `proto` the server is asked for its schema, by reflection.
local echo = brunt.grpc { base = "grpc://127.0.0.1:50051", proto = "echo.proto" }

-- What one user does, once.
local visit = brunt.scenario("visit", function(vu)
  -- A message's fields by their names; what was returned is the answer's value.
  local said = echo:call("brunt.Echo/Say", { text = "hello " .. vu.id }, { name = "say" })
  brunt.check(said, { ["the same text"] = said.ok and said.value.text == "hello " .. vu.id })

  -- Somebody who reads: between one and two seconds.
  brunt.pause(1, 2)

  -- Where the server streams, the value is the list of its messages.
  local repeated = echo:call("brunt.Echo/Repeat", { text = "x", times = 3 }, { name = "repeat", timeout = "2s" })
  brunt.check(repeated, { ["three times"] = repeated.ok and #repeated.value == 3 })
end)

-- Who comes when: users come at a rate, however long the target takes.
visit:inject {
  brunt.ramp_rate(1, 20, "10s"),
  brunt.rate(20, "20s"),
}

-- What must hold, else brunt exits with 1. `["say:p95"]` is about the calls with that name.
brunt.expect {
  error_rate = "< 1%",
  checks = "> 99%",
  ["say:p95"] = "< 100ms",
}
