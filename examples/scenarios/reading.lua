-- What is in answers: by CSS selectors, XPath, JSONPath and regular expressions.

local brunt = require "brunt"
local http = brunt.http { base = "http://127.0.0.1:8080" }

local reading = brunt.scenario("reading", function(vu)
  -- The first element that matches; what is not there would end the iteration with an error that names it.
  local form = http:get("/shop/login", { name = "form" })
  local token = form:css("input[name=token]"):attr("value")
  brunt.check(form, {
    ["the token is the same by any way"] = form:xpath("//input[@name='token']/@value") == token
      and form:regex([[name="token" value="(?<token>[^"]+)"]]).token == token,
    ["three fields"] = #form:css_all("input") == 3 and form:xpath("count(//input)") == 3,
    ["no other form"] = not form:has_css("form ~ form"),
  })
  http:post("/shop/login", { form = { user = "ann", password = "pw-ann", token = token }, name = "login" })

  local items = http:get("/shop/items", { name = "items" })
  local dear = items:jsonpath_all("$.items[?(@.price_cents > 600)].id")
  brunt.check(items, {
    ["ten items"] = #items:jsonpath_all("$.items[*]") == 10,
    ["some are dear"] = #dear > 0,
    ["each has a price"] = not items:has_jsonpath("$.items[?(!@.price_cents)]"),
  })
end)

reading:inject { brunt.iterations_each(4, 3) }

brunt.expect { checks = ">= 100%" }
