-- What goes wrong in a script ends that iteration, is counted with its traceback, and does not stop the others.

local brunt = require "brunt"
local http = brunt.http { base = "http://127.0.0.1:8080" }

local wrong = brunt.scenario("wrong", function(vu)
  local answer = http:get("/shop/items", { name = "items" })
  if vu.iteration % 3 == 0 then
    -- A field that is not there: an error of Lua.
    return answer:json().nothing.here
  elseif vu.iteration % 3 == 1 then
    -- One in words of our own.
    brunt.fail("iteration " .. vu.iteration % 3 .. " is one too many")
  end
end)

wrong:inject { brunt.iterations_each(2, 6) }

-- A user can go before its time, and so can everybody.
local impatient = brunt.scenario("impatient", function(vu)
  http:get("/shop/", { name = "home" })
  if vu.iteration == 2 then
    brunt.stop_user()
  end
  brunt.check(nil, { ["nobody comes a third time"] = vu.iteration < 2 })
end)

impatient:inject { brunt.iterations_each(3, 10) }

brunt.expect { ["wrong:script_errors"] = "== 8", ["wrong:iterations"] = "== 12", ["home:due"] = "== 6" }
