-- Ten items as JSON an iteration, by 64 users; with READS=yes one check and one JSONPath besides. --duration says how long.
local brunt = require "brunt"
local http = brunt.http { base = "http://127.0.0.1:8080" }
local reads = brunt.env("READS", "no") == "yes"

brunt.scenario("items", function()
  local answer = http:get("/shop/items")
  if reads then
    brunt.check(answer, { ["an id"] = answer:jsonpath("$.items[0].id") == 1 })
  end
end):inject { brunt.users(64, "1s") }
