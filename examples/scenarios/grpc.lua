-- A gRPC service by its .proto file: `brunt serve grpc` returns what it is sent.

local brunt = require "brunt"
local echo = brunt.grpc { base = "grpc://127.0.0.1:50051", proto = "../grpc/echo.proto" }

local calls = brunt.scenario("calls", function(vu)
  -- A message's fields by their names; what was returned is the answer's value.
  local said = echo:call("brunt.Echo/Say", { text = "hello " .. vu.id })
  brunt.check(said, { ["the same text"] = said.value.text == "hello " .. vu.id })

  -- Where the server streams, the value is the list of its messages.
  local repeated = echo:call("brunt.Echo/Repeat", { text = "x", times = 3 }, { name = "repeat", timeout = "2s" })
  brunt.check(repeated, { ["three times"] = #repeated.value == 3 and repeated.value[3].number == 3 })

  -- Where the client streams, the arguments are a list of messages.
  local collected = echo:call("brunt.Echo/Collect", { { text = "a" }, { text = "b" } })
  brunt.check(collected, { ["both"] = collected.value.number == 2 and collected.value.text == "b" })
  local chat = echo:call("brunt.Echo/Chat", { { text = "a" }, { text = "b" } }, { metadata = { ["x-user"] = "u" .. vu.id } })
  brunt.check(chat, { ["in their order"] = #chat.value == 2 and chat.value[1].text == "a" })

  -- A stream of one's own: messages are sent and received one by one, until one side has said all.
  local talk = echo:stream("brunt.Echo/Chat", nil, { name = "talk", timeout = "5s" })
  local heard = {}
  for number = 1, 3 do
    talk:send({ text = "word " .. number })
    heard[number] = talk:receive({ timeout = "2s" })
  end
  talk:finish()
  brunt.check(nil, { ["word by word"] = heard[3] ~= nil and heard[3].text == "word 3" and talk:receive() == nil and talk.ok })

  -- A status that is not OK is an answer: no success, with what the server says of it.
  local failed = echo:call("brunt.Echo/Fail", { status = 5, message = "no such sku" })
  brunt.check(failed, { ["not found"] = not failed.ok and failed.status == 5 and failed.message == "no such sku" })
end)

calls:inject { brunt.iterations_each(4, 5) }

brunt.expect { checks = ">= 100%" }
