-- What chains.py says, for brunt.
local brunt = require "brunt"
local http = brunt.http { base = brunt.env("BASE") }

brunt.scenario("follower", function()
  http:get("/shop/redirect/2", { name = "chain" })
  http:get("/shop/redirect/2", { name = "held", redirects = false })
  local judged = http:get("/shop/redirect/1", { name = "judged", redirects = false })
  if judged.headers.location == "" then judged:fail("nowhere") end
  brunt.pause("1ms")
end):inject { brunt.iterations_each(3, 5) }
