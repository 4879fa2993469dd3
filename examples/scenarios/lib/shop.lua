-- A module that scenarios share: what one does in the shop.

local brunt = require "brunt"

local shop = {}

function shop.log_in(http, name)
  local account = http:post("/shop/login", { form = { user = name, password = "pw-" .. name }, name = "login" })
  return brunt.check(account, { ["is logged in"] = account.ok and account:json().user == name })
end

return shop
