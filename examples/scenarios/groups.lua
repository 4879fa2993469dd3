-- What belongs together is timed together, with and without the user's pauses; iterations can have a pace.

local brunt = require "brunt"
local http = brunt.http { base = "http://127.0.0.1:8080" }

local groups = brunt.scenario("groups", function()
  -- An iteration begins every 100 ms, unless it takes longer.
  brunt.pacing("100ms")

  local items = brunt.group("browse", function()
    -- What is to be read of an answer is read before the next call or pause.
    local list = http:get("/shop/items", { name = "items" }):json().items
    brunt.pause("20ms") -- as long as it says
    brunt.pause("5ms", "10ms") -- something between
    brunt.pause { exponential = "5ms" } -- around a mean
    brunt.group("details", function()
      http:get("/shop/items/" .. list[1].id, { name = "item/:id" })
    end)
    return list
  end)
  brunt.check(items, { ["a group gives what its function returns"] = #items == 10 })
end)

groups:inject { brunt.users(4, "1s") }

brunt.expect {
  ["group browse:with_pauses.min"] = "> 25ms",
  ["group browse/details:p99"] = "< 2s",
  checks = ">= 100%",
}
