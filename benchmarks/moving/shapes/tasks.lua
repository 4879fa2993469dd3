-- What tasks.py says, for brunt.
local brunt = require "brunt"
local http = brunt.http { base = brunt.env("BASE") }

brunt.scenario("shopper", function(vu)
  if vu.iteration == 1 then http:get("/shop/", { name = "start" }) end
  http:get("/shop/items?page=" .. vu.iteration, { name = "page" })
  http:get("/_/status/404", { name = "missing", ok = { 404 } })
  local home = http:get("/", { name = "home" })
  if vu.iteration % 2 == 0 then home:fail("even") end
  http:get("/_/status/500", { name = "broken" })
  brunt.pause("1ms")
end):on_stop(function()
  http:get("/shop/", { name = "stop" })
end):inject { brunt.iterations_each(3, 10) }

brunt.expect { error_rate = "<= 30%" }
