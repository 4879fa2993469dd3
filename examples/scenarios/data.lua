-- Data: from files beside the script or from a table, loaded once, and taken in turn by all users.

local brunt = require "brunt"
local http = brunt.http { base = "http://127.0.0.1:8080" }

local users = brunt.csv("data/users.csv"):circular() -- in order, again and again
local baskets = brunt.jsonl("data/baskets.jsonl"):random() -- any of them
local pages = brunt.lines("data/pages.txt"):shuffled() -- each once, then all again
local plans = brunt.json("data/plans.json"):circular()
local vouchers = brunt.data({ "A1", "B2", "C3", "D4", "E5", "F6" }):queue { at_end = "stop_run" } -- each once: then the run ends

local data = brunt.scenario("data", function()
  local voucher = vouchers:next()
  local user, basket, plan = users:next(), baskets:next(), plans:next()
  local echo = http:post("/_/echo", {
    json = { voucher = voucher, name = user.name, card = user.card, item = basket.item },
    name = "voucher",
    tags = { plan = plan.plan },
  })
  brunt.check(echo, {
    ["the voucher came back"] = echo:json().voucher == voucher,
    ["a row has its columns"] = #user.name >= 3 and user.card:find("4000", 1, true),
    ["an item"] = basket.item == 3 or basket.item == 14 or basket.item == 15,
  })
  http:get("/shop/items", { query = { page = pages:next() }, name = "items" })
end)

-- Three users, until there are no vouchers left.
data:inject { brunt.users(3, "10s") }

brunt.expect { checks = ">= 100%", ["voucher:due"] = "== 6" }
