-- A user who logs in, looks around, and buys: sessions, checks, pauses, groups and thresholds in one place.

local brunt = require "brunt"
local http = brunt.http { base = "http://127.0.0.1:8080", headers = { Accept = "application/json" } }

local baskets = brunt.jsonl("data/baskets.jsonl"):circular()

local checkout = brunt.scenario("checkout", function(vu)
  local name = "user-" .. vu.id
  local home = http:get("/shop/", { name = "home" })
  brunt.check(home, { ["200"] = home.status == 200, ["has a cart"] = home:find("cart") })

  http:post("/shop/login", { form = { user = name, password = "pw-" .. name }, name = "login" })
  brunt.pause("10ms", "30ms")

  brunt.group("cart", function()
    local basket = baskets:next()
    local cart = http:post("/shop/cart", { json = basket, name = "add to cart" })
    brunt.check(cart, { ["201"] = cart.status == 201 })
    local seen = http:get("/shop/cart/" .. cart:json().id, { name = "cart/:id" })
    brunt.check(seen, { ["the same basket"] = seen:json().item == basket.item and seen:json().count == basket.count })
    brunt.pause("20ms")
    http:post("/shop/checkout", { json = { cart = cart:json().id }, name = "checkout" })
  end)
end)

checkout:inject { brunt.at_once(10), brunt.ramp_rate(20, 60, "1s"), brunt.rate(60, "1s") }

brunt.expect { p99 = "< 2s", error_rate = "< 1%", checks = "> 99%", ["home:p95"] = "< 1s" }
