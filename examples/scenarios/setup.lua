-- Once a run, before and after everybody: what setup returns is given to all users, on all threads, and to teardown.

local brunt = require "brunt"
local http = brunt.http { base = "http://127.0.0.1:8080" }

brunt.setup(function()
  local items = http:get("/shop/items", { name = "setup" }):json().items
  return { first = items[1].id, last = items[#items].id }
end)

brunt
  .scenario("visit", function(vu, given)
    local id = given.first + vu.iteration % (given.last - given.first + 1)
    brunt.check(http:get("/shop/items/" .. id, { name = "item/:id" }), {
      ["the item asked for"] = function(answer) return answer:json().id == id end,
    })
  end)
  :inject { brunt.iterations_each(4, 5) }

brunt.teardown(function(given)
  http:delete("/_/status/" .. 200 + given.first, { name = "teardown" })
end)

brunt.expect { checks = ">= 100%", ["item/:id:due"] = "== 20" }
