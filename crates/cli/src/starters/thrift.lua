-- A scenario for brunt: users of a Thrift service, how many come and when, and what must hold in the end.
--
--   brunt serve thrift                the target that this one is written for, in another terminal
--   brunt check FILE                  what it does, and what is misspelt in it
--   brunt run --once FILE             one iteration, with every call and answer
--   brunt run FILE                    the whole load
--
-- All of it is Lua 5.1 (LuaJIT). The guide is docs/rpc.md, or brunt help rpc.

local brunt = require "brunt"

-- Where calls go, and the IDL beside this file.
local echo = brunt.thrift { idl = "echo.thrift", service = "Echo", address = "127.0.0.1:9090" }

-- What one user does, once.
local visit = brunt.scenario("visit", function(vu)
  -- A method's arguments by their names; what it returned is the answer's value.
  local number = echo:echo({ value = vu.id }, { name = "echo" })
  brunt.check(number, { ["the same number"] = number.value == vu.id })

  -- Somebody who reads: between one and two seconds.
  brunt.pause(1, 2)

  -- Structs, enums and lists are tables.
  local item = echo:item({ item = { sku = "a1", colour = "RED" } }, { name = "item" })
  brunt.check(item, { ["as it was"] = item.ok and item.value.colour == "RED" })
end)

-- Who comes when: users come at a rate, however long the target takes.
visit:inject {
  brunt.ramp_rate(1, 20, "10s"),
  brunt.rate(20, "20s"),
}

-- What must hold, else brunt exits with 1. `["echo:p95"]` is about the calls with that name.
brunt.expect {
  error_rate = "< 1%",
  checks = "> 99%",
  ["echo:p95"] = "< 100ms",
}
