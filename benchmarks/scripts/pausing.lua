-- Ten thousand users, each with a connection of its own and a pause of a second; --duration says how long.
local brunt = require "brunt"
local http = brunt.http { base = "http://127.0.0.1:8080" }

brunt.scenario("pause", function()
  local answer = http:get("/")
  brunt.check(answer, { ["200"] = answer.status == 200 })
  brunt.pause(1)
end):inject { brunt.ramp_users(0, 10000, "5s"), brunt.users(10000, "15s") }
