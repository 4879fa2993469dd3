-- Values that scripts make: identifiers, samples, digests, signed tokens, dates. What is random comes from the run's seed.

local brunt = require "brunt"
local http = brunt.http { base = "http://127.0.0.1:8080" }

local SECRET = brunt.env("SIGNING_KEY", "a key for this example")
local sizes = { "S", "M", "L", "XL" }

local order = brunt.scenario("order", function(vu)
  local body = brunt.json.encode {
    id = brunt.uuid(),
    voucher = brunt.random_string(8, "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"),
    amount = brunt.random(1, 5),
    sizes = brunt.sample(sizes, 2),
    at = brunt.date("%Y-%m-%dT%H:%M:%S.%3fZ"),
  }
  local token = brunt.jwt.sign({ sub = "user " .. vu.id, exp = math.floor(brunt.now()) + 60 }, SECRET)
  local echo = http:post("/_/echo", {
    name = "order",
    body = body,
    bearer = token,
    headers = { ["Content-Type"] = "application/json", ["X-Signature"] = brunt.hmac("sha256", SECRET, body, "base64") },
  })
  local sent = echo:json()
  brunt.check(echo, {
    ["a UUID of version 4"] = #sent.id == 36 and sent.id:sub(15, 15) == "4",
    ["two different sizes"] = #sent.sizes == 2 and sent.sizes[1] ~= sent.sizes[2],
    ["one to five"] = sent.amount >= 1 and sent.amount <= 5,
    ["the digest of what was sent"] = brunt.sha256(echo.body) == brunt.sha256(body),
    ["claims can be read"] = brunt.jwt.claims(token).sub == "user " .. vu.id,
  })
  http:get("/shop/items?q=" .. brunt.url_encode("größe " .. brunt.sample(sizes)), { name = "search" })
end)

order:inject { brunt.iterations_each(3, 4) }

brunt.expect { checks = ">= 100%" }
