-- Modules beside the script, values from the command line (`--env GREETING=hello`), and a store that each user has.

local brunt = require "brunt"
local shop = require "lib.shop"
local http = brunt.http { base = "http://127.0.0.1:8080" }

local greeting = brunt.env("GREETING", "hello")

brunt
  .scenario("modules", function(vu)
    if not vu.store.logged_in then
      vu.store.logged_in = shop.log_in(http, "user" .. vu.id)
    end
    vu.store.visits = (vu.store.visits or 0) + 1
    local echo = http:post("/_/echo", { body = greeting .. " " .. vu.store.visits, name = "greeting" })
    brunt.check(echo, { ["greets each time"] = echo.body == greeting .. " " .. vu.iteration })
  end)
  :inject { brunt.iterations_each(3, 4) }

brunt.expect { checks = ">= 100%", ["login:due"] = "== 3", ["greeting:due"] = "== 12" }
