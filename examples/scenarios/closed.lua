-- The closed model: so many users are there, and each begins anew when it has ended. A slow target gets less load.

local brunt = require "brunt"
local http = brunt.http { base = "http://127.0.0.1:8080" }

local function visit()
  http:get("/shop/items", { name = "items" })
  brunt.pause("10ms")
end

-- Up to ten, stay, and down again by steps.
brunt.scenario("crowd", visit):inject {
  brunt.ramp_users(1, 10, "400ms"),
  brunt.users(10, "200ms"),
  brunt.user_stairs { from = 8, by = -4, steps = 2, hold = "200ms" },
}

-- Five users, four times each.
brunt.scenario("each", visit):inject { brunt.iterations_each(5, 4) }

-- Thirty times in all, by five users.
brunt.scenario("shared", visit):inject { brunt.iterations_shared(5, 30) }

brunt.expect {
  users = "<= 20",
  ["each:iterations"] = "== 20",
  ["shared:iterations"] = "== 30",
}
