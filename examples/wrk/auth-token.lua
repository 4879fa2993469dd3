-- The first answer brings a token, and every request after it carries it.
--
--   brunt -s auth-token.lua URL -- /login /account

local login, account = "/login", "/account"
local token

accepted, refused = 0, 0

function setup(thread)
  threads = threads or {}
  table.insert(threads, thread)
end

function init(args)
  login, account = args[1] or login, args[2] or account
end

function request()
  if not token then
    return wrk.format("GET", login)
  end
  return wrk.format("GET", account)
end

function response(status, headers, body)
  if not token and status == 200 then
    token = body:match("%S+")
    wrk.headers["Authorization"] = "Bearer " .. token
  elseif status == 200 then
    accepted = accepted + 1
  else
    refused = refused + 1
  end
end

function done(summary, latency, requests)
  local accepted, refused = 0, 0
  for _, thread in ipairs(threads) do
    accepted = accepted + thread:get("accepted")
    refused = refused + thread:get("refused")
  end
  print(string.format("accepted %d refused %d of %d", accepted, refused, summary.requests))
end
