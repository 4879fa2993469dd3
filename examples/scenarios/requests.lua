-- Every kind of request: methods, queries, headers, and bodies as they are, as forms, with files, and as JSON.

local brunt = require "brunt"
local http = brunt.http { base = "http://127.0.0.1:8080", headers = { ["X-Shop"] = "yes" } }

local requests = brunt.scenario("requests", function()
  local headers = http:get("/_/headers", {
    query = { q = "a b&c", list = { 1, 2 } },
    headers = { ["X-Call"] = "also" },
    name = "query and headers",
  })
  brunt.check(headers, {
    ["the query is escaped"] = headers:find("q=a%20b%26c", true),
    ["a list comes several times"] = headers:find("list=1&list=2", true),
    ["headers of the client"] = headers:find("X-Shop: yes", true),
    ["headers of the call"] = headers:find("X-Call: also", true),
  })

  local raw = http:post("/_/echo", { body = "as it is\0", headers = { ["Content-Type"] = "text/plain" }, name = "raw" })
  brunt.check(raw, { ["came back"] = raw.body == "as it is\0" })

  local form = http:put("/_/echo", { form = { a = 1, b = "x y" }, name = "form" })
  brunt.check(form, { ["encoded"] = form.body == "a=1&b=x+y" })

  local json = http:patch("/_/echo", { json = { list = { 1, 2.5, "three" }, none = brunt.null }, name = "json" })
  brunt.check(json, {
    ["a table again"] = json:json().list[3] == "three" and json:json().none == brunt.null,
  })

  local upload = http:post("/shop/upload", {
    multipart = { note = "hello", file = { filename = "a.txt", content = "12345", type = "text/plain" } },
    name = "upload",
  })
  brunt.check(upload, {
    ["two parts"] = upload.ok and #upload:json().parts == 2,
    ["five bytes"] = upload:match('"bytes":5,"filename":"a.txt"'),
  })

  brunt.check(http:head("/shop/items"), { ["no body"] = function(answer) return answer.body == "" end })
  http:delete("/_/status/204", { name = "delete" })
  http:options("/_/status/200", { name = "options" })
  http:request("PURGE", "/_/status/200", { name = "purge" })

  -- A timeout of its own: this call fails, by name, and the iteration goes on.
  local late = http:get("/shop/slow", { query = { ms = 5000 }, timeout = "50ms", name = "late" })
  brunt.check(late, { ["timed out"] = late.error == "timeout" })
end)

requests:inject { brunt.iterations_each(2, 2) }

brunt.expect { ["late:timeout"] = "== 4", timeout = "== 4", ["json:checks"] = ">= 100%" }
