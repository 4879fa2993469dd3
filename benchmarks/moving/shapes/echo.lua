-- What echo.py says, for brunt.
local brunt = require "brunt"
local http = brunt.http { base = brunt.env("BASE") }

brunt.scenario("speaker", function(vu)
  local round = vu.iteration - 1
  local said = { round = round, words = { "é", "\"", "\\" }, nothing = brunt.null }
  local echo = http:post("/_/echo", { name = "echo", json = said })
  local heard = echo:json()
  if heard.round ~= round or heard.words[3] ~= "\\" or heard.nothing ~= brunt.null then echo:fail("another echo") end
  local judged = http:post("/_/echo", { name = "judged", json = { ok = round % 5 ~= 0 } })
  if not judged:json().ok then judged:fail("not ok") end
  brunt.pause("1ms")
end):inject { brunt.iterations_each(3, 5) }
