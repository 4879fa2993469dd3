-- Several scenarios: weighted, at the same time, and after one another.

local brunt = require "brunt"
local http = brunt.http { base = "http://127.0.0.1:8080" }

local browse = brunt.scenario("browse", function()
  http:get("/shop/items", { name = "items" })
end)

local buy = brunt.scenario("buy", function()
  http:get("/shop/items/7", { name = "item" })
end)

local admin = brunt.scenario("admin", function()
  http:get("/_/count", { name = "count" })
end)

local report = brunt.scenario("report", function()
  http:get("/shop/", { name = "home" })
end)

-- Of a hundred who come, about ninety look and ten buy.
brunt.mix({ { browse, 90 }, { buy, 10 } }):inject { brunt.rate(400, "500ms") }

-- At the same time.
admin:inject { brunt.users(1, "300ms") }

-- When admin has ended.
report:inject { brunt.iterations_each(1, 5), after = admin }

brunt.expect { ["report:iterations"] = "== 5" }
