-- Calls the hooks of a script. They are looked up each time, since scripts exchange them at run time. Done here, the
-- lookup is compiled together with the hooks and costs next to nothing.

local objects, inner = ...
local hooks = {}
local concat, getinfo, load = table.concat, inner.getinfo, inner.load

-- Not `return request()`: LuaJIT does not compile a function that ends with a tail call and is called from outside.
function hooks.request()
  local made = request()
  return made
end

-- Several in a row, since each entry into Lua and back costs as much as a small `request`. They are joined by a byte
-- with which no request begins. `made` has the requests up to the first that is not a string; no more are made after
-- it, nor after an error or an end.
local made = { count = 0 }
hooks.made = made

function hooks.requests(count)
  made.count = 0
  for place = 1, count do
    local one = request()
    made[place] = one
    made.count = place
    if objects.stopped or type(one) ~= "string" then
      return false
    end
  end
  return concat(made, "\0", 1, count)
end

function hooks.response(status, headers, body)
  response(status, headers, body)
end

-- Most answers have the same header fields as the last one. For them no new strings are made: a function for just that
-- number of fields fills a table with the strings that exist (see wrk.lua about loops).
local most_fields = 32
local makers, make, fields, last_body = {}

local function maker(count)
  local pairs_of = {}
  for place = 1, count, 2 do
    pairs_of[#pairs_of + 1] = string.format("[f[%d]] = f[%d]", place, place + 1)
  end
  local code = "return function(f) return { " .. table.concat(pairs_of, ", ") .. " } end"
  return assert(load(code, "=hooks"))()
end

-- Keeps names and values, alternating; returns whether it could.
function hooks.remember(names_and_values)
  local count = #names_and_values
  if count > 2 * most_fields then
    return false
  end
  makers[count] = makers[count] or maker(count)
  make, fields = makers[count], names_and_values
  return true
end

-- The number of a function's parameters, up to three: other arguments need not be made. Three if it has `...`.
function hooks.parameters(of)
  local about = getinfo(of, "u")
  return about.isvararg and 3 or math.min(math.max(about.nparams, 1), 3)
end

-- Shows `count` answers of one status to `response`, with the kept fields and body, as long as that function is still
-- `known`. Returns how many were not shown because it changed. There is one responder for each number of parameters, so
-- that each is compiled for itself.
local responders = {}

responders[1] = function(known)
  return function(status, count)
    for left = count, 1, -1 do
      if response ~= known then
        return left
      end
      known(status)
      if objects.stopped then
        return 0
      end
    end
    return 0
  end
end

responders[2] = function(known)
  return function(status, count)
    for left = count, 1, -1 do
      if response ~= known then
        return left
      end
      known(status, make(fields))
      if objects.stopped then
        return 0
      end
    end
    return 0
  end
end

responders[3] = function(known)
  return function(status, count, body)
    last_body = body or last_body
    for left = count, 1, -1 do
      if response ~= known then
        return left
      end
      known(status, make(fields), last_body)
      if objects.stopped then
        return 0
      end
    end
    return 0
  end
end

function hooks.responder(parameters)
  return responders[parameters](response)
end

function hooks.delay()
  local pause = delay()
  return pause
end

-- Most garbage of a small script is younger than a request. So the collector examines the long-lived objects more
-- rarely than by Lua's default, at the price of a little memory. A script that holds much is left alone.
if collectgarbage("count") < 8192 then
  collectgarbage("setpause", 400)
end

return hooks
