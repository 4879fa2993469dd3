-- A scenario that ends the run for everybody, when it has seen enough.

local brunt = require "brunt"
local http = brunt.http { base = "http://127.0.0.1:8080" }

brunt
  .scenario("until it fails", function()
    local answer = http:get("/shop/failing", { query = { every = 20 }, name = "failing" })
    if answer.status == 500 then
      -- This is what it was to find: without `ok` the run would have failed.
      brunt.stop_run("the page failed", { ok = true })
    end
    brunt.pause("1ms")
  end)
  :inject { brunt.users(1, "1m") }
