-- Figures of one's own: what the load does in terms of the business, in the report and in thresholds.

local brunt = require "brunt"
local http = brunt.http { base = "http://127.0.0.1:8080" }

local added = brunt.counter("added")
local price = brunt.trend("price", { unit = "eur" })
local named = brunt.rate("has a name")
local cart = brunt.gauge("cart", { unit = "items" })

local shop = brunt.scenario("shop", function(vu)
  for pick = 1, 3 do
    local item = http:get("/shop/items/" .. (vu.id * 10 + pick), { name = "item/:id" }):json()
    price:add(item.price_cents / 100)
    named:add(item.name ~= "")
    added:add()
    cart:set(pick)
  end
end)

shop:inject { brunt.iterations_each(4, 1) }

brunt.expect { ["added:sum"] = "== 12", ["price:max"] = "< 100", ["has a name:share"] = ">= 100%" }
