-- memcached in a scenario: what the protocol takes from the command line, it takes here by the same names.

local brunt = require "brunt"
local cache = brunt.memcached { address = "127.0.0.1:11211" }

local visit = brunt.scenario("visit", function(vu)
  local key = "user:" .. vu.id
  local stored = cache:call({ item = key, set = "hello " .. vu.id }, { name = "set" })
  brunt.check(stored, { stored = stored.status == 201 })
  local found = cache:call({ item = key }, { name = "get" })
  brunt.check(found, { ["is what was set"] = found:find("hello " .. vu.id, true) })
  local missed = cache:call({ item = "nobody:" .. vu.id }, { name = "miss" })
  brunt.check(missed, { missed = missed.status == 404 and not missed.ok })
end)

visit:inject { brunt.iterations_each(5, 20) }

brunt.expect { ["checks"] = ">= 100%", ["get:error_rate"] = "== 0" }
