-- What must hold, else brunt exits with 1. This one does not: every second answer of one page is an error, and the threshold on
-- it is beyond repair long before the minute is over, which ends the run.

local brunt = require "brunt"
local http = brunt.http { base = "http://127.0.0.1:8080" }

brunt
  .scenario("failing", function()
    http:get("/shop/items", { name = "items", tags = { kind = "good" } })
    http:get("/shop/failing", { query = { every = 2 }, name = "failing", tags = { kind = "bad" } })
    brunt.pause("1ms")
  end)
  :inject { brunt.users(5, "1m") }

brunt.expect {
  p99 = "< 5s", -- of all calls, from when they were due
  ["service.p50"] = "< 5s",
  ["items:p95"] = "< 5s", -- of the calls with a name,
  ["kind=good:error_rate"] = "<= 0%", -- with a tag,
  ["scenario failing:script_errors"] = "== 0", -- of a scenario
  ["failing:error_rate"] = { "< 5%", abort = true }, -- ends the run when it cannot hold any more
}
