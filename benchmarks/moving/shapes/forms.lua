-- What forms.py says, for brunt.
local brunt = require "brunt"
local http = brunt.http { base = brunt.env("BASE") }

brunt.scenario("clerk", function()
  http:get("/shop/items", { name = "page", query = { page = 2 } })
  local query = http:get("/_/headers", { name = "query", query = { q = "a b&c=ü" } })
  if not query.body:gsub("%%20", "+"):find("a+b%26c%3D%C3%BC", 1, true) then query:fail("another query") end
  local form = http:post("/_/echo", { name = "form", form = { name = "ann & co" } })
  if form.body:gsub("%%20", "+") ~= "name=ann+%26+co" then form:fail("another form") end
  http:post("/shop/upload", { name = "upload", multipart = { page = { filename = "page.txt", content = "hello", type = "text/plain" } } })
  brunt.pause("1ms")
end):inject { brunt.iterations_each(3, 5) }
