-- What blunders.py says, for brunt.
local brunt = require "brunt"
local http = brunt.http { base = brunt.env("BASE") }

brunt.scenario("clumsy", function(vu)
  http:get("/shop/", { name = "home" })
  if vu.iteration % 2 == 0 then error("no such page") end
  http:get("/shop/items", { name = "items" })
  brunt.pause("1ms")
end):inject { brunt.iterations_each(3, 5) }
