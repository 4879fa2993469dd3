-- What keys.py says, for brunt.
local brunt = require "brunt"
local http = brunt.http { base = brunt.env("BASE") }

brunt.scenario("holder", function()
  http:get("/shop/private", { name = "known", basic = { "ann", "pw-ann" } })
  http:get("/shop/private", { name = "unknown", basic = { "ann", "wrong" } })
  http:get("/shop/private", { name = "nobody", ok = { 401 } })
  brunt.pause("1ms")
end):inject { brunt.iterations_each(3, 5) }
