-- Errors of scripts, and checks of their arguments: the first part of the module `brunt`.
--
-- Each part is given `host` (functions in Rust), `brunt` (the module), `core` (the interface for protocols' parts) and
-- `shared` (state and functions that the parts share, and functions that the engine calls).

local host, brunt, core, shared = ...

local getinfo = debug.getinfo

-- An error that ends the run: the script is wrong, whatever its calls return.
local Wrong = {}
Wrong.__index = Wrong
Wrong.__tostring = function(self)
  return self.text
end

-- The text of such an error; nil for any other error.
function shared.wrong_text(problem)
  return getmetatable(problem) == Wrong and problem.text or nil
end

-- "file:line: " of the innermost function outside of the library.
local function position()
  for level = 2, 50 do
    local info = getinfo(level, "Sl")
    if not info then
      return ""
    end
    if info.currentline > 0 and info.source:sub(1, 6) ~= "=brunt" then
      return info.source:gsub("^[@=]", "") .. ":" .. info.currentline .. ": "
    end
  end
  return ""
end

-- Raises such an error. `certain`: it is wrong whatever servers answer.
local function wrong(message, certain)
  error(setmetatable({ text = position() .. message, certain = certain }, Wrong), 0)
end

-- The text of a certain error; nil for any other error.
function shared.certainly_wrong(problem)
  return getmetatable(problem) == Wrong and problem.certain and problem.text or nil
end

local function raise(message)
  error(position() .. message, 0)
end

-- What scripts write in place of methods, fields and globals of other tools and languages.
local WRITTEN = {
  on = "socket:on_message(f)", set_interval = "socket:every(t, f)", setInterval = "socket:every(t, f)", set_timeout = "brunt.spawn(f), with brunt.pause(t) in f",
  setTimeout = "brunt.spawn(f), with brunt.pause(t) in f", contains = "text:find(part, 1, true)", includes = "text:find(part, 1, true)",
  indexOf = "text:find(part, 1, true)", startsWith = "text:sub(1, #part) == part", starts_with = "text:sub(1, #part) == part",
  length = "#list", push = "list[#list + 1] = value", append = "list[#list + 1] = value", toString = "tostring(value)", split = "text:gmatch(pattern)",
  trim = "text:match(pattern)", replace = "text:gsub(pattern, by)", cookies = "http:cookie(name)", status_code = "answer.status",
  next = "data:circular() at the top, and feeder:next()", failure = "answer:fail(reason)", success = "answer:pass()", check = "brunt.check(answer, { name = condition })", console = "brunt.log(level, text)",
  JSON = "brunt.json", Math = "math", sleep = "brunt.pause(t)", randomIntBetween = "brunt.random(a, b)", parseInt = "tonumber(text)",
  fetch = "http:get(path)", recv = "socket:receive()", observe = "figure:add(value)", record = "figure:add(value)", rand = "math.random()",
  assert = "brunt.check(answer, { name = condition })", inc = "figure:add(1)", on_start = "if vu.iteration == 1 then … end, at the top of the scenario's function",
  open = "brunt.ws { base = … } at the top, and ws:connect(path)", __ENV = "brunt.env(name, default)", __VU = "vu.id", __ITER = "vu.iteration",
}

-- What other tools call options that functions have here.
local OPTIONS = {
  data = "body", params = "query", auth = "basic", files = "multipart", allow_redirects = "redirects", follow_redirects = "redirects",
}

-- What scripts write in place of fields and methods that answers have elsewhere; any other word as everywhere.
local FIELDS = setmetatable({
  status_code = "answer.status", statusCode = "answer.status", code = "answer.status", status_text = "answer.status", text = "answer.body",
  content = "answer.body", data = "answer:json()", cookies = "http:cookie(name)", header = "answer.headers.name",
  elapsed = "answer.timings.response", duration = "answer.timings.response", response_time = "answer.timings.response",
  time = "answer.timings.response", latency = "answer.timings.response", error_code = "answer.error", is_ok = "answer.ok",
}, { __index = WRITTEN })

-- What to write in place of a name of other tools; nil for any other name.
function shared.written_for(name)
  return WRITTEN[name]
end

-- By name: whether a script gives tables a field of this name.
local given = {}

-- Called where a table of the library does not have a name: raises an error with what `written` has for it, or with the nearest
-- name. Names in the tables `...` may be absent, and so may a name that the script itself assigns.
function core.absent(whose, name, written, ...)
  if type(name) ~= "string" or given[name] then
    return
  end
  for place = 1, select("#", ...) do
    if (select(place, ...))[name] ~= nil then
      return
    end
  end
  if given[name] == nil then
    given[name] = host.assigns_field(name)
  end
  if given[name] then
    return
  end
  if written[name] then
    wrong(whose .. " has no '" .. name .. "'; write " .. written[name], true)
  end
  local names, listed = {}, {}
  for _, known in ipairs({ ... }) do
    for one in next, known do
      if not listed[one] then
        listed[one] = true
        names[#names + 1] = one
      end
    end
  end
  table.sort(names)
  wrong(host.unknown_name(whose, name, names), true)
end

-- What every answer has, or may have, besides methods.
local OF_ANSWERS = { status = true, ok = true, error = true, reason = true, body = true, timings = true, keep = true }

-- The same for an answer. Scripts ask every answer for its `error`.
function core.absent_of_answer(name, ...)
  if OF_ANSWERS[name] then
    return
  end
  return core.absent("an answer", name, FIELDS, OF_ANSWERS, core.reading, ...)
end

-- The tables of methods of the library's objects.
local objects = {}

-- An empty table for an object's methods, among which errors find the nearest to an unknown one.
function core.object()
  local object = {}
  objects[#objects + 1] = object
  return object
end

-- Makes methods refuse to be called with a dot, which would take their first argument for the object. `whose` is what
-- scripts call the object.
function core.with_colon(whose, object)
  for name, method in next, object do
    if type(method) == "function" and name:sub(1, 2) ~= "__" then
      object[name] = function(self, ...)
        if getmetatable(self) ~= object then
          wrong(whose .. "." .. name .. "(…) is called with a dot: write " .. whose .. ":" .. name .. "(…), with a colon", true)
        end
        return method(self, ...)
      end
    end
  end
end

local function nearest_method(name)
  local names, listed = {}, {}
  for _, object in ipairs(objects) do
    for known in pairs(object) do
      if not listed[known] and known:sub(1, 2) ~= "__" then
        listed[known] = true
        names[#names + 1] = known
      end
    end
  end
  table.sort(names)
  return host.unknown_name("", name, names):match("; did you mean .*")
end

-- An error of Lua, with what to write in place of the name that is nil in it.
function shared.hinted(problem)
  local kind, name
  if type(problem) == "string" then
    kind, name = problem:match("attempt to %a+ (%a+) '([^']*)' %(a nil value%)")
  end
  local maker = type(problem) == "string" and problem:match("attempt to [%a ]+ field '([%a_]+)' %(a function value%)")
  if maker and core.reading[maker] then
    return problem .. "; " .. maker .. " is a method of answers: write answer:" .. maker .. "(…), with a colon and brackets"
  elseif maker and rawget(brunt, maker) then
    return problem .. "; brunt." .. maker .. " makes a client: local " .. maker .. " = brunt." .. maker .. " { base = … } at the top"
  end
  local written = name and WRITTEN[name]
  written = written and "; write " .. written or kind == "method" and nearest_method(name)
  return written and problem:gsub("%(a nil value%)", function(nothing) return nothing .. written end, 1) or problem
end

core.wrong, core.raise = wrong, raise

-- A value in words, for errors.
local function shown(value)
  if type(value) == "string" then
    return "'" .. value .. "'"
  end
  return type(value) == "number" and tostring(value) or (value == nil and "nil" or "a " .. type(value))
end

-- Raises such an error about the arguments of a call. It is certain unless one of them, `...`, is made up: then another
-- answer may have given another argument.
local function wrong_call(message, ...)
  wrong(message, not (shared.is_hidden() or shared.made_up(...)))
end

core.wrong_call = wrong_call

-- Checks that a table of options has only known options, given as a set. `written` has what to write in place of others.
local function check_options(whose, options, known, written)
  if options == nil then
    return
  end
  if type(options) ~= "table" then
    wrong_call(whose .. " takes a table of options, not " .. shown(options), options)
  end
  for name in pairs(options) do
    if not known[name] then
      if written and written[name] then
        wrong(whose .. " has no option '" .. name .. "'; write " .. written[name], true)
      elseif name == "data" and type(options[name]) == "table" and known.form then
        wrong(whose .. " has no option 'data'; write form = { … } for the fields of a form, or json = { … }", true)
      elseif known[OPTIONS[name] or ""] then
        wrong(whose .. " has no option '" .. name .. "'; did you mean '" .. OPTIONS[name] .. "'?", true)
      end
      local names = {}
      for name in pairs(known) do
        names[#names + 1] = name
      end
      table.sort(names)
      wrong(host.unknown(whose, tostring(name), table.concat(names, " ")), true)
    end
  end
end

core.check_options = check_options

-- Refuses what stands in `of` beside its first `most` places: a name would be taken in silence. `place` is that of `of` in
-- its list, if it is in one.
local function check_places(whose, of, most, place)
  for name, value in pairs(of) do
    if type(name) ~= "number" or name > most then
      wrong(
        whose .. " takes { what, weight } at each place, and nothing else: not " .. shown(name)
          .. (type(value) == "number" and " = " .. shown(value) or "") .. (place and " at place " .. place or ""),
        true
      )
    end
  end
end

-- Checks that a list of { what, weight } has nothing else.
function core.check_weighted(whose, parts)
  if type(parts) ~= "table" then
    return
  end
  check_places(whose, parts, math.huge)
  for place, part in ipairs(parts) do
    if type(part) == "table" and getmetatable(part) == nil then
      check_places(whose, part, 2, place)
    end
  end
end

-- Values that are hardly meant: a list of tables with `file`, `line` and `problem`.
local unlikely, doubted = {}, {}

function shared.unlikely()
  return unlikely
end

-- The most seconds that somebody who writes a number without a unit may mean, where a call or a user waits; and lengths
-- that may well be longer.
local MOST_MEANT = 600
local LONG = {
  ["a length"] = true, ["the length of brunt.during"] = true, start = true, longest = true, grace = true, ramp_down_grace = true,
}

-- Notes a time without a unit that is hardly meant.
function core.doubt_seconds(what, value)
  if LONG[what] or #unlikely >= 100 or shared.is_running() and not shared.is_rehearsing() then
    return
  end
  local file, line = position():match("^(.*):(%d+): $")
  local key = tostring(file) .. ":" .. tostring(line) .. what
  if file and not doubted[key] then
    doubted[key] = true
    local number = tostring(value)
    unlikely[#unlikely + 1] = {
      file = file, line = tonumber(line),
      problem = what .. " of " .. number .. " is in seconds: write \"" .. number .. "ms\" for milliseconds, or \"" .. number .. "s\" if it is meant",
    }
  end
end

-- A duration in seconds, from a number of seconds or a text such as "500ms".
local function seconds(what, value)
  if type(value) == "number" and value > MOST_MEANT then
    core.doubt_seconds(what, value)
  end
  local read = value
  if type(value) == "string" then
    read = host.duration(value)
  end
  if type(read) ~= "number" or not (read >= 0) or read > 2592000 then
    wrong(what .. " must be a duration such as 2 (seconds) or \"500ms\", not " .. shown(value), type(value) == "string" or not (shared.is_hidden() or shared.made_up(value)))
  end
  return read
end

core.seconds = seconds

-- A number of at least `least`.
local function number(what, value, least)
  if type(value) ~= "number" or not (value >= least) then
    wrong(what .. " must be a number" .. (least > 0 and " of at least " .. least or "") .. ", not " .. shown(value))
  end
  return value
end

core.number, core.shown = number, shown
