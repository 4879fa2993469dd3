-- Several things at once, what is tried again, and other ways through a scenario.

local brunt = require "brunt"
local http = brunt.http { base = "http://127.0.0.1:8080" }

local tasks = brunt.scenario("tasks", function(vu)
  -- Everybody begins at once.
  local all = brunt.rendezvous("begin", 4, "10s")
  brunt.check(all, { ["all are there"] = all })

  -- A page with what it names; the second time, the cache has most of it.
  local home = http:page("/shop/", { name = "home", resources = "of home" })
  brunt.check(home, { ["what it names came with it"] = vu.iteration > 1 or #home.resources == 3 })

  -- The user goes on while a task of it waits for a slow page.
  local slow = brunt.spawn(function()
    return http:get("/shop/slow?ms=50", { name = "slow" }).status
  end)
  http:get("/shop/items", { name = "items" })
  brunt.check(slow:wait(), { ["the slow page came"] = function(status) return status == 200 end })

  -- No longer than this.
  local given, why = brunt.timeout(function() brunt.pause(5) end, "20ms")
  brunt.check(why, { ["it took too long"] = given == nil and why == "timeout" })

  -- Again, until it is an answer that is ok.
  local answer = brunt.retry({ times = 4, pause = "5ms" }, function()
    return http:get("/shop/items/" .. vu.id, { name = "item/:id" })
  end)
  brunt.check(answer, { ["ok at last"] = answer.ok })

  brunt.choose {
    { function() http:get("/shop/items?page=2", { name = "more" }) end, 80 },
    { function() brunt.during("20ms", function() http:get("/shop/items", { name = "items" }) end) end, 20 },
  }
  if vu.iteration == 2 then
    brunt.exit_here()
  end
  http:get("/shop/", { name = "the end" })
end)

tasks:inject { brunt.iterations_each(4, 2) }

brunt.expect { checks = ">= 100%" }
