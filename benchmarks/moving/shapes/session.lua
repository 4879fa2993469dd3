-- What session.py says, for brunt.
local brunt = require "brunt"
local http = brunt.http { base = brunt.env("BASE") }

brunt.scenario("member", function(vu)
  if vu.iteration == 1 then
    local token = http:get("/shop/login", { name = "form" }):css("input[name=token]"):attr("value")
    http:post("/shop/login", { name = "login", form = { user = "ann", password = "pw-ann", token = token } })
  end
  local account = http:get("/shop/account", { name = "account" })
  if account:jsonpath("$.user") ~= "ann" then account:fail("somebody else") end
  brunt.pause("1ms")
end):inject { brunt.iterations_each(3, 5) }
