-- A scenario for brunt: what users do, how many come and when, and what must hold in the end.
--
--   brunt serve http                  the target that this one is written for, in another terminal
--   brunt check FILE                  what it does, and what is misspelt in it
--   brunt run --once FILE             one iteration, with every request and answer
--   brunt run FILE                    the whole load
--
-- All of it is Lua 5.1 (LuaJIT). The guide is docs/scenarios.md and docs/lua.md, or brunt help scenarios and brunt help lua.

local brunt = require "brunt"

-- Where the requests go; `brunt run --base-url URL` takes another place.
local http = brunt.http { base = "http://127.0.0.1:8080", headers = { Accept = "application/json" } }

-- Users take these in turn. From a file it would be: brunt.csv("users.csv"):circular()
local users = brunt.data { { name = "ann" }, { name = "bob" }, { name = "eve" } }:circular()

-- What one user does, once.
local visit = brunt.scenario("visit", function(vu)
  local user = users:next()

  -- Each user has its own cookies and connections, as a browser. Redirects are followed.
  http:post("/shop/login", { form = { user = user.name, password = "pw-" .. user.name }, name = "login" })

  local items = http:get("/shop/items", { query = { page = vu.id % 10 + 1 }, name = "items" })
  brunt.check(items, {
    ["200"] = items.status == 200,
    ["ten items"] = items.ok and #items:json().items == 10,
  })

  -- Somebody who reads: between one and two seconds.
  brunt.pause(1, 2)

  -- What belongs together is timed together.
  brunt.group("buy", function()
    local cart = http:post("/shop/cart", { json = { item = 7, count = 2 }, name = "add to cart" })
    if not brunt.check(cart, { ["201"] = cart.status == 201 }) then
      return
    end
    http:get("/shop/cart/" .. cart:json().id, { name = "cart/:id" })
  end)
end)

-- Who comes when. This is open: users come at a rate, however long the target takes. The other way is closed:
-- `brunt.users(50, "1m")` keeps fifty users there, each beginning anew when it has ended.
visit:inject {
  brunt.ramp_rate(1, 20, "10s"),
  brunt.rate(20, "20s"),
}

-- What must hold, else brunt exits with 1. `["items:p95"]` is about the calls with that name.
brunt.expect {
  p99 = "< 200ms",
  error_rate = "< 1%",
  checks = "> 99%",
  ["items:p95"] = "< 100ms",
}
