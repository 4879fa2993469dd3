-- One GET with one check an iteration, by one user, ITERATIONS times, PAUSE seconds apart. Without the compiler, as interpreted.lua is.
jit.off()

local brunt = require "brunt"
local http = brunt.http { base = "http://127.0.0.1:8080" }

local pause = tonumber(brunt.env("PAUSE", "0"))

brunt.scenario("get", function()
  local answer = http:get("/")
  brunt.check(answer, { ["200"] = answer.status == 200 })
  if pause > 0 then brunt.pause(pause) end
end):inject { brunt.iterations_shared(1, tonumber(brunt.env("ITERATIONS", "1000"))) }
