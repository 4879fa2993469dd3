-- What a browser does by itself: cookies are kept for each user, redirects are followed (each hop is a call of its own).

local brunt = require "brunt"
local http = brunt.http { base = "http://127.0.0.1:8080" }
-- A client that follows nothing.
local strict = brunt.http { base = "http://127.0.0.1:8080", redirects = false, cookies = false }

local login = brunt.scenario("session", function(vu)
  local name = "user" .. vu.id

  -- Without a session, the account sends us to the login: we get its form.
  local form = http:get("/shop/account", { name = "account" })
  local token = form:match('name="token" value="([^"]+)"')
  brunt.check(form, { ["the form has a token"] = token })

  -- The login answers with a cookie and sends us back to the account.
  local account = http:post("/shop/login", {
    form = { user = name, password = "pw-" .. name, token = token },
    name = "login",
  })
  brunt.check(account, { ["is logged in"] = account:json().user == name })

  -- The cookie stays for the calls that follow, until it is taken back.
  brunt.check(http:get("/shop/account"), { ["still is"] = function(again) return again:json().user == name end })
  http:post("/shop/logout", { name = "logout" })
  local out = http:get("/shop/account", { redirects = 0, name = "logged out" })
  brunt.check(out, { ["no more"] = out.status == 302 and out.headers.Location == "/shop/login" })

  -- Several redirects in a row, and none.
  local far = http:get("/shop/redirect/3", { name = "far" })
  brunt.check(far, { ["arrived"] = far.status == 200 and far:find("The shop", true) })
  brunt.check(strict:get("/shop/redirect/3", { name = "not followed" }), {
    ["302"] = function(answer) return answer.status == 302 end,
  })

  -- Credentials.
  brunt.check(http:get("/shop/private", { basic = { "ann", "pw-ann" }, name = "basic" }), {
    ["is ann"] = function(answer) return answer:json().user == "ann" end,
  })
  local refused = http:get("/shop/private", { bearer = "nonsense", name = "bearer" })
  brunt.check(refused, { ["refused"] = refused.status == 401 and refused.headers["WWW-Authenticate"] ~= nil })
end)

login:inject { brunt.iterations_each(4, 3) }

brunt.expect { checks = ">= 100%" }
