-- Questions to answers: Lua's patterns, regular expressions, JSON, JSONPath, CSS selectors, XPath.

local host, brunt, core, shared = ...

local find = string.find
local wrong, raise, shown = core.wrong, core.raise, core.shown

-- Methods of answers of any protocol; each searches the body.
local reading = core.object()

-- The answer in words, for errors.
local function described(answer)
  if answer.error then
    return "the call failed (" .. tostring(answer.error) .. "): its answer"
  end
  return answer.status > 0 and "the answer (status " .. answer.status .. ")" or "the answer"
end

-- The beginning of a body, for errors.
local function beginning(body)
  if body == "" then
    return "; its body is empty"
  end
  local shown, is_cut = host.beginning(body, 60)
  return "; it begins: " .. shown .. (is_cut and "…" or "")
end

-- The body as text in UTF-8, from the charset that its byte order mark, its Content-Type or itself states. A body of
-- ASCII alone is the same in all of them, but for those that write ASCII's bytes for other letters.
local function text_of_body(self)
  local body = self.body
  if not find(body, "[\27\128-\255]") then
    return body
  end
  local headers = getmetatable(self).has_headers and self.headers
  local problem, text = host.text_in_charset(body, type(headers) == "table" and headers["content-type"] or nil)
  if problem then
    raise(described(self) .. " " .. problem)
  end
  return text or body
end

-- Checks that a method was called with the answer before its arguments.
local function check_colon(answer, method)
  if type(answer) ~= "table" then
    wrong("write answer:" .. method .. "(…), with a colon", true)
  end
end

-- The body as JSON: a table, or another value. Raises an error if it is not JSON.
function reading.json(self)
  check_colon(self, "json")
  -- A made-up body is not parsed: the result would not show that it is made up.
  local value = rawget(self, "decoded") or core.made_up()
  if value == nil then
    local problem
    value, problem = brunt.json.decode(text_of_body(self))
    shared.count_demand(self, "json", nil, problem == nil)
    if problem then
      raise(described(self) .. " is not JSON: " .. problem .. beginning(self.body))
    end
    rawset(self, "decoded", value)
  end
  return value
end

-- Counts the answer as not ok, for `reason`.
function reading.fail(self, reason)
  check_colon(self, "fail")
  shared.fail_answer(self, reason)
end

-- Counts the answer as ok, whatever its status.
function reading.pass(self)
  check_colon(self, "pass")
  shared.pass_answer(self)
end

-- The values found, or false: in a table of checks, nil would not be a check at all.
local function or_false(first, ...)
  if first == nil then
    return false
  end
  return first, ...
end

-- The place of a Lua pattern in the body, as string.find, but false where there is none; `plain` takes the pattern
-- literally.
function reading.find(self, pattern, plain)
  check_colon(self, "find")
  return or_false(self.body:find(pattern, 1, plain))
end

-- The captures of a Lua pattern in the body, as string.match, but false where it does not match.
function reading.match(self, pattern)
  check_colon(self, "match")
  return or_false(self.body:match(pattern))
end

local Element = core.object()
Element.__index = Element

-- The answer that contains an element.
local answers = setmetatable({}, { __mode = "k" })

local function element_of(answer, element)
  answers[element] = answer
  return setmetatable(element, Element)
end

-- The value of an attribute. Raises an error if the element does not have it.
function Element:attr(name)
  local value = self.attributes[name]
  local answer = answers[self]
  if answer then
    shared.count_demand(answer, "attr", tostring(name), value ~= nil)
  end
  if value == nil then
    raise("<" .. self.name .. "> has no attribute " .. shown(name))
  end
  return value
end

-- Conversions of results for the script: a regular expression with groups gives several values.
local given = {
  css = function(element, answer)
    return element_of(answer, element)
  end,
  regex = function(captured)
    if type(captured) == "string" then
      return captured
    elseif captured.named then
      captured.named, captured.n = nil, nil
      return captured
    end
    return unpack(captured, 1, captured.n)
  end,
}
local function as_found(found)
  return found
end
given.jsonpath, given.xpath = as_found, as_found

-- The words for each kind of question in errors: for a wrong one, and for one without a result.
local words = {
  css = { "css takes a CSS selector", "has no element that matches " },
  jsonpath = { "jsonpath takes a JSONPath", "has nothing at " },
  regex = { "regex takes a regular expression", "has no match of " },
  xpath = { "xpath takes an XPath", "has nothing at " },
}

-- All results, or only the first, as a list; nil in a rehearsal, where there is nothing to find.
local function look_for(kind, answer, question, all, namespaces)
  check_colon(answer, kind)
  if type(question) ~= "string" then
    wrong(words[kind][1] .. ", not " .. shown(question), true)
  elseif kind == "css" and namespaces ~= nil then
    wrong("css takes a selector alone: css(selector):attr(name) reads an attribute", true)
  elseif namespaces ~= nil and type(namespaces) ~= "table" then
    wrong(kind .. " takes namespaces as { prefix = uri }, not " .. shown(namespaces), true)
  end
  local problem, certain, found = host.look_for(kind, text_of_body(answer), question, all, namespaces)
  if problem and certain then
    wrong(kind .. " " .. shown(question) .. ": " .. problem, true)
  elseif shared.is_rehearsing() then
    return nil
  elseif problem then
    shared.count_demand(answer, kind, nil, false)
    raise(described(answer) .. ": " .. problem .. beginning(answer.body))
  end
  return found
end

core.look_for = look_for

for kind, give in pairs(given) do
  -- The first result. Raises an error if there is none.
  reading[kind] = function(self, question, namespaces)
    local found = look_for(kind, self, question, false, namespaces)
    if not found then
      return shared.anything
    end
    shared.count_demand(self, kind, question, found[1] ~= nil)
    if found[1] == nil then
      raise(described(self) .. " " .. words[kind][2] .. shown(question) .. beginning(self.body))
    end
    return give(found[1], self)
  end
  -- A list of all results. If there are several groups, each result is a table.
  reading[kind .. "_all"] = function(self, question, namespaces)
    local found = look_for(kind, self, question, true, namespaces)
    if not found then
      return { shared.anything }
    end
    for place, one in ipairs(found) do
      if kind == "css" then
        element_of(self, one)
      elseif type(one) == "table" and kind == "regex" then
        one.named, one.n = nil, nil
      end
    end
    return found
  end
  -- Whether there is a result. A boolean result of an XPath is returned as it is.
  reading["has_" .. kind] = function(self, question, namespaces)
    local found = look_for(kind, self, question, false, namespaces)
    if not found then
      return true
    end
    return found[1] ~= nil and not (kind == "xpath" and found[1] == false)
  end
end

-- The texts of schemas given as tables, each encoded once.
local schemas = setmetatable({}, { __mode = "k" })

local function text_of_schema(schema)
  if type(schema) == "string" then
    return schema
  elseif type(schema) ~= "table" then
    wrong("matches_schema takes a JSON Schema, as a table or as the text of a file, not " .. shown(schema), true)
  end
  local text, problem = schemas[schema], nil
  if not text then
    text, problem = host.json_encode(schema)
    if not text then
      wrong("matches_schema: " .. problem, true)
    end
    schemas[schema] = text
  end
  return text
end

-- Whether the body is JSON that matches a schema. It counts as a check called `name`; a failed one tells the place and
-- the reason of the mismatch.
function reading.matches_schema(self, schema, name)
  check_colon(self, "matches_schema")
  local problem, certain, found = host.look_for("schema", text_of_body(self), text_of_schema(schema), false)
  if problem and certain then
    wrong("matches_schema: " .. problem, true)
  elseif shared.is_rehearsing() then
    return true
  end
  local reason = problem and described(self) .. ": " .. problem or found[1]
  shared.count_reading(self, name == nil and "matches_schema" or tostring(name), reason)
  return reason == nil
end

core.reading = reading
