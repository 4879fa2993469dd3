-- One GET with one check an iteration, by 64 users; --duration says how long.
local brunt = require "brunt"
local http = brunt.http { base = "http://127.0.0.1:8080" }

brunt.scenario("get", function()
  local answer = http:get("/")
  brunt.check(answer, { ["200"] = answer.status == 200 })
end):inject { brunt.users(64, "1s") }
