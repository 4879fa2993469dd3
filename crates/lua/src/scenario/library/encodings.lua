-- Texts that encode bytes or values: JSON, base64, hexadecimal digits, URLs.

local host, brunt, core, shared = ...

local type, plain_tostring, format, find, match, tonumber = type, tostring, string.format, string.find, string.match, tonumber
local wrong, raise, shown = core.wrong, core.raise, core.shown

-- Rejects arguments that a function cannot take. In a rehearsal the mistake ends the run before it begins, unless it
-- may follow from a made-up answer: then the result is made up as well. During the load it may follow from a server's
-- answer, and ends the iteration.
function core.misused(message, ...)
  if not shared.is_rehearsing() then
    raise(message)
  end
  if shared.is_hidden() or shared.made_up(...) then
    return shared.anything
  end
  wrong(message, true)
end

local misused = core.misused

-- A text, or a number as one; nil for anything else.
local function text_of(value)
  if type(value) == "string" then
    return value
  end
  if type(value) == "cdata" then
    -- LuaJIT shows an integer of 64 bits as 5LL or 5ULL.
    return match(plain_tostring(value), "^(-?%d+)U?LL$")
  elseif type(value) ~= "number" then
    return getmetatable(value) == host.integers and value.digits or nil
  end
  -- Lua shows fourteen digits. Here a whole number has all of its digits, and a fraction as many as tell it from its
  -- neighbours.
  if value % 1 == 0 and value >= -2 ^ 53 and value <= 2 ^ 53 then
    return format("%d", value)
  end
  local short = plain_tostring(value)
  return tonumber(short) == value and not find(short, "e", 1, true) and short or host.number_text(value)
end

core.text_of, core.inexact, core.null = text_of, host.inexact, host.null

-- Whole numbers of 15 digits and more as Lua's .. and string.format write them: the last digits are lost.
local SHORTENED = "%d%.%d%d%d%d%d%d%d%d+e%+1[45]%f[%D]"
-- The longest text that is searched for them, in bytes.
local MOST_SEARCHED = 65536
-- Files that the script sends: they have the numbers that they have.
local files = {}

function shared.learn_file(content)
  files[content] = true
end

-- Refuses a number that has lost digits in a text of the script's. `what` names the text.
function core.refuse_shortened(what, number)
  misused(what .. " has " .. number .. ": Lua's .. keeps 14 digits of a number; write tostring(id), which keeps all of them")
end

-- Refuses a text of the script's in which a whole number has lost digits. `what` names it.
function core.check_digits(what, text)
  if type(text) == "string" and #text <= MOST_SEARCHED and find(text, "e+1", 1, true) and not files[text] then
    local number = match(text, SHORTENED)
    if number then
      core.refuse_shortened(what, number)
    end
  end
end

-- As Lua's own, but numbers have all of their digits, and integers of 64 bits nothing else.
local function exact_tostring(value)
  local kind = type(value)
  return (kind == "number" or kind == "cdata") and text_of(value) or plain_tostring(value)
end

_G.tostring = exact_tostring

-- Whole numbers beyond 2^53 of JSON, which numbers of Lua cannot hold: values of their own that are texts, or numbers of
-- JSON, with all of their digits, and cannot be calculated with.
local integers = host.integers
integers.__index = false
integers.__tostring = function(self)
  return self.digits
end
integers.__concat = function(one, other)
  return plain_tostring(one) .. plain_tostring(other)
end
integers.__eq = function(one, other)
  return one.digits == other.digits
end
integers.__lt = function(one, other)
  local a, b = one.digits, other.digits
  local is_negative = a:sub(1, 1) == "-"
  if is_negative ~= (b:sub(1, 1) == "-") then
    return is_negative
  elseif #a ~= #b then
    return (#a < #b) ~= is_negative
  end
  return a ~= b and (a < b) ~= is_negative
end
integers.__le = function(one, other)
  return not (other < one)
end

-- Defines `brunt[name]`, a function of a text, by a function that returns a problem, or nil and the result.
local function of_text(name, carry_out)
  brunt[name] = function(value)
    local text = text_of(value)
    if not text then
      return misused("brunt." .. name .. " takes a text, not " .. shown(value), value)
    end
    local problem, made = carry_out(text)
    if problem then
      return misused("brunt." .. name .. ": " .. problem)
    end
    return made
  end
end

for name, encoding in pairs({ base64 = "base64", base64url = "base64url", hex = "hex" }) do
  of_text(name, function(text)
    return host.encode(encoding, text)
  end)
end

of_text("base64_decode", host.base64_decode)
of_text("hex_decode", host.hex_decode)
of_text("url_decode", host.url_decode)
of_text("url_encode", function(text)
  return nil, host.url_encode(text)
end)

core.base64, core.url_encode, core.url = brunt.base64, host.url_encode, host.url

-- JSON. `brunt.json(file)` makes data; see data.lua.
local json = {}
brunt.json, brunt.null = setmetatable(json, {
  __call = function(_, file, options)
    return shared.json_rows(file, options)
  end,
}), host.null

-- Marks a table as a list, so that JSON has `[]` for an empty one.
function brunt.array(list)
  if list ~= nil and type(list) ~= "table" then
    return misused("brunt.array takes a list, not " .. shown(list), list)
  end
  return setmetatable(list or {}, host.arrays)
end

function json.encode(value)
  local made_up = shared.is_rehearsing() and shared.made_up(value)
  if made_up then
    return made_up
  end
  local text, problem = host.json_encode(value)
  if problem then
    -- A nil would be a request without a body.
    return misused("brunt.json.encode: " .. problem, value)
  end
  return text
end

function json.decode(text)
  if shared.is_rehearsing() and (shared.made_up(text) or shared.is_hidden()) then
    return shared.anything
  elseif type(text) ~= "string" then
    return misused("brunt.json.decode takes a text, not " .. shown(text), text)
  end
  return host.json_decode(text)
end
