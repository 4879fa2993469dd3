-- A Thrift service by its IDL: `brunt serve thrift 127.0.0.1:9090` returns every argument as it came.

local brunt = require "brunt"
local echo = brunt.thrift { idl = "../thrift/echo.thrift", service = "Echo", address = "127.0.0.1:9090" }

local calls = brunt.scenario("calls", function(vu)
  -- A method's arguments by their names; what it returned is the answer's value.
  local number = echo:echo { value = vu.id }
  brunt.check(number, { ["the same number"] = number.value == vu.id })

  -- Structs, enums, defaults, lists and maps are tables.
  local item = echo:item({ item = { sku = "a1", colour = "RED" } }, { name = "item", tags = { kind = "struct" } })
  brunt.check(item, {
    ["as it was"] = item.value.sku == "a1" and item.value.colour == "RED",
    ["with its default"] = item.value.count == 1,
  })
  local items = echo:items { items = { red = { { sku = "a" }, { sku = "b", count = 2 } }, none = {} } }
  brunt.check(items, { ["all of them"] = #items.value.red == 2 and items.value.red[2].count == 2 and #items.value.none == 0 })

  -- A declared exception is an answer: no success, and a value that can be looked at.
  local refused = echo:refuse()
  brunt.check(refused, { ["refused"] = not refused.ok and refused.exception.name == "Refused" })

  -- What the service could not carry out is a failure by name.
  local failed = echo:fail()
  brunt.check(failed, { ["failed"] = failed.error == "exception" })

  -- oneway: over when the system has taken it.
  echo:tell { what = "bye" }
end)

calls:inject { brunt.iterations_each(4, 5) }

brunt.expect { checks = ">= 100%" }
