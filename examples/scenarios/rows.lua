-- Rows of each user's own, from a file that stays on disk; rows that no two iterations share, from an SQLite file.

local brunt = require "brunt"
local http = brunt.http { base = "http://127.0.0.1:8080" }

-- Each user logs in as somebody else, and stays that one.
local users = brunt.csv("data/users.csv", { stream = true }):per_user()
-- Each order once in the whole run; then the run ends, and its report says why.
local orders = brunt.sqlite("data/shop.db", "SELECT id, name FROM customers WHERE plan = 'free' ORDER BY id")
  :queue { at_end = "stop_run" }

local rows = brunt.scenario("rows", function(vu)
  local user, order = users:next(), orders:next()
  vu.store.name = vu.store.name or user.name
  local echo = http:post("/_/echo", { json = { user = user.name, order = order.id }, name = "order" })
  brunt.check(echo, {
    ["the same user as ever"] = users:next().name == vu.store.name,
    ["an order of the free plan"] = echo:json().order % 2 == 1,
  })
end)

rows:inject { brunt.users(2, "10s") }

brunt.expect { checks = ">= 100%", ["order:due"] = "== 3" }
