-- A page with what belongs to it, as browsers load it: the page, then its resources at once, over up to six connections.

local brunt = require "brunt"
local http = brunt.http { base = "http://127.0.0.1:8080", connections = 6 }

local page = brunt.scenario("page", function()
  brunt.group("page", function()
    local home = http:get("/shop/", { name = "home" })
    local paths = {}
    for path in home.body:gmatch('"(/shop/[%w.]+%.%w+)"') do
      paths[#paths + 1] = path
    end
    local resources = http:batch(paths)
    brunt.check(home, { ["all three came"] = #resources == 3 and resources[1].ok and resources[2].ok and resources[3].ok })

    -- Requests of a batch can have their own methods and options.
    local answers = http:batch {
      { "POST", "/_/echo", { body = "one", name = "echo" } },
      { "GET", "/shop/items", { query = { page = 2 }, name = "items" } },
    }
    brunt.check(answers[1], { ["in their order"] = answers[1].body == "one" and answers[2].status == 200 })
  end)
end)

page:inject { brunt.users(3, "1s") }

brunt.expect { checks = ">= 100%" }
