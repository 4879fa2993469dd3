-- What patience.py says, for brunt.
local brunt = require "brunt"
local http = brunt.http { base = brunt.env("BASE") }

brunt.scenario("waiter", function()
  http:get("/_/delay/2000", { name = "late", timeout = "100ms" })
  http:get("/_/delay/1", { name = "soon", timeout = "5s" })
  brunt.pause("1ms")
end):inject { brunt.iterations_each(3, 5) }
