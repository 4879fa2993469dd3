-- A limit to the calls a second over all users: here it is reached, and held.

local brunt = require "brunt"
local http = brunt.http { base = "http://127.0.0.1:8080" }

brunt
  .scenario("held back", function()
    http:get("/shop/", { name = "home" })
  end)
  :inject { brunt.users(10, "2s") }

brunt.throttle(100)

brunt.expect { due = "<= 220" }
