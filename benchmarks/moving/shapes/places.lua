-- What places.py says, for brunt.
local brunt = require "brunt"
local http = brunt.http { base = brunt.env("BASE") }

brunt.scenario("walker", function()
  for item = 1, 3 do http:get("/shop/items/" .. item, { name = "/shop/items/[id]" }) end
  http:get("/_/status/503", { name = "away" })
  http:get("http://127.0.0.1:1/", { name = "nowhere" })
  brunt.pause("1ms")
end):inject { brunt.iterations_each(3, 5) }
