-- What steps.py says, for brunt: a task within a task is a function that is called.
local brunt = require "brunt"
local http = brunt.http { base = brunt.env("BASE") }

local function search()
  http:get("/shop/items?page=1", { name = "ask" })
  http:get("/shop/items/1", { name = "look" })
end

brunt.scenario("visitor", function()
  http:get("/shop/", { name = "home" })
  search()
  http:get("/_/status/204", { name = "buy" })
  brunt.pause("1ms")
end):inject { brunt.iterations_each(3, 5) }
