-- The open model: users come when they come, however long those before them take. Each does one iteration. What their first
-- call takes counts from their arrival.

local brunt = require "brunt"
local http = brunt.http { base = "http://127.0.0.1:8080" }

local open = brunt.scenario("open", function()
  http:get("/shop/items", { name = "items" })
end)

open:inject {
  brunt.at_once(5),
  brunt.nothing_for("100ms"),
  brunt.ramp(10, "300ms"), -- ten users in all, evenly
  brunt.rate(50, "400ms"), -- fifty a second: twenty
  brunt.ramp_rate(0, 100, "400ms"), -- twenty
  brunt.peak(15, "300ms"), -- slowly, then fast, then slowly
  brunt.stairs { from = 10, by = 20, steps = 3, hold = "200ms" }, -- ten, thirty, fifty a second: two, six and ten
  most_alive = 200,
}

brunt.expect { users_started = "== 88", not_admitted = "== 0", iterations = "== 88" }
