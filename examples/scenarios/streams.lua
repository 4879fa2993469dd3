-- Tokens of a language model: time to the first, between them, and how many a second, for one user and for all.

local brunt = require "brunt"
-- Any endpoint of OpenAI's kind; `brunt serve http` makes its tokens up. A stream ends with `data: [DONE]`, or has failed.
local llm = brunt.http {
  base = "http://127.0.0.1:8080",
  last_message = "[DONE]",
  stall_timeout = "2s",
}

local words = brunt.counter("words")

local chat = brunt.scenario("chat", function(vu)
  local text = {}
  local stream = llm:events("/v1/chat/completions", {
    name = "chat",
    json = { model = "any", stream = true, messages = { { role = "user", content = "Say something." } } },
  })
  for event in stream do
    text[#text + 1] = event:json().choices[1].delta.content
  end
  -- Once it is over, the stream is its call's answer.
  brunt.check(stream, { ["200"] = stream.status == 200, ["has 50 tokens"] = #text == 50 })
  words:add(select(2, table.concat(text):gsub("%a+", "")))
  brunt.pause("100ms")

  -- Who has read enough goes, and closes the connection: what came until then counts.
  local glance = llm:events("/v1/chat/completions", { name = "glance", json = { stream = true } })
  for event in glance do
    if event:json().choices[1].delta.content:find("steady") then
      break
    end
  end
  glance:close()
end)

chat:inject { brunt.iterations_each(5, 2) }

brunt.expect {
  ["chat:first_message.p99"] = "< 1s",
  ["chat:message_gap.p99"] = "< 200ms",
  ["chat:messages"] = "== 500",
  error_rate = "== 0",
  checks = ">= 100%",
}
