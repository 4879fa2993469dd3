-- The smallest scenario: ten users at a time, each asking for a page over and over.

local brunt = require "brunt"
local http = brunt.http "http://127.0.0.1:8080"

brunt
  .scenario("first", function()
    http:get("/shop/")
  end)
  :inject { brunt.users(10, "1s") }
