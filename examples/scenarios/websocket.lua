-- A conversation over WebSocket: `brunt serve ws --push 20ms` echoes what it is told, and says something by itself now and then.

local brunt = require "brunt"
local ws = brunt.ws { base = "ws://127.0.0.1:9001/" }

local chat = brunt.scenario("chat", function(vu)
  -- The handshake is a call. What it gives is the socket, which is its answer as well.
  local socket = ws:connect()
  brunt.check(socket, { ["switched"] = socket.status == 101 })

  -- A message, and the one that comes back: one call. What the server says by itself meanwhile is no answer to it.
  local hello = "hello from " .. vu.id
  local echo = socket:request(hello, { match = hello, name = "hello" })
  brunt.check(echo, { ["came back"] = echo.body == hello and echo.text })

  -- The two halves of that, each a call: `send` is over when the system has taken the message.
  socket:send('{"type": "price", "sku": "a' .. vu.id .. '"}', { name = "ask" })
  local price = socket:receive {
    match = function(message)
      return message:find('"price"', true) and message:json().sku == "a" .. vu.id
    end,
    timeout = "30s",
    name = "price",
  }
  brunt.check(price, { ["is mine"] = price.ok })

  -- What nobody asked for: the next message, within a second.
  local news = socket:receive { timeout = "30s", name = "news" }
  brunt.check(news, { ["there are news"] = not news.error })

  -- Bytes that need not be text.
  local bytes = socket:request("\0\255", { binary = true, name = "bytes", match = function(m) return not m.text end })
  brunt.check(bytes, { ["the same bytes"] = bytes.body == "\0\255" })

  -- Says goodbye, and waits for the server's.
  socket:close { code = 1000, reason = "done" }
end)

chat:inject { brunt.iterations_each(5, 4) }

brunt.expect { checks = ">= 100%", error_rate = "== 0" }
