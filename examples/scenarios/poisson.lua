-- Random arrivals, as those of people who know nothing of each other; the seed decides (`--seed`). And a limit: who comes
-- when ten are there already is not admitted, and is counted. A run that admits so few has failed, unless that is allowed:
-- brunt run --allow-less 80% poisson.lua

local brunt = require "brunt"
local http = brunt.http { base = "http://127.0.0.1:8080" }

brunt
  .scenario("crowd", function()
    http:get("/shop/slow", { query = { ms = 100 }, name = "slow" })
  end)
  :inject { brunt.rate(300, "1s"), arrivals = "poisson", most_alive = 10 }
