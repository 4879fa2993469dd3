-- Ways to authorize requests: Digest, which answers a challenge; Signature V4 of AWS; a token by OAuth 2.0. The target here asks for
-- none, and says what it was sent.

local brunt = require "brunt"
local http = brunt.http { base = "http://127.0.0.1:8080" }

-- In a real script: brunt.env("AWS_SECRET_ACCESS_KEY"), with --env AWS_SECRET_ACCESS_KEY=@AWS_SECRET_ACCESS_KEY.
local aws = { key = "AKIDEXAMPLE", secret = brunt.env("AWS_SECRET", "an example"), region = "eu-central-1", service = "execute-api" }

local signed = brunt.scenario("signed", function()
  local answer = http:get("/_/headers", { query = { b = 2, a = 1 }, aws = aws, name = "aws" })
  brunt.check(answer, {
    ["is signed"] = answer:find("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/", 1, true),
    ["says when"] = answer:match("[Xx]%-[Aa]mz%-[Dd]ate: %d+T%d+Z"),
  })
  -- Nobody challenges, so that the first request is the last.
  local open = http:get("/_/headers", { digest = { "ann", "her password" }, name = "digest" })
  brunt.check(open, { ["no password without a challenge"] = not open:find("uthorization", 1, true) })
end)

signed:inject { brunt.iterations_each(2, 3) }

brunt.expect { checks = ">= 100%", ["digest challenge:due"] = "== 6" }
