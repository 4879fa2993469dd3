-- Connections: users have their own, as browsers do. With a pool they share some, as the users of a server behind another do.

local brunt = require "brunt"
local shared = brunt.http { base = "http://127.0.0.1:8080", pool = 4 }

brunt
  .scenario("pooled", function()
    shared:get("/shop/items", { name = "pooled" })
    brunt.pause("5ms")
  end)
  :inject { brunt.users(20, "1s") }
