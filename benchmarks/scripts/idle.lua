-- USERS users who make one call each, over connections that they share, and wait.
local brunt = require "brunt"
local http = brunt.http { base = "http://127.0.0.1:8080", pool = 1 }

brunt.scenario("wait", function()
  http:get("/")
  brunt.pause("1h")
end):inject { brunt.users(tonumber(brunt.env("USERS", "100")), "5s") }
