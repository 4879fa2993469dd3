-- Calls the hooks of a script. They are looked up each time, since scripts exchange them while they run; done here, that
-- is compiled together with them and costs next to nothing.

local objects, inner = ...
local hooks = {}
local concat, getinfo, load = table.concat, inner.getinfo, inner.load

-- Not `return request()`: a function that ends with a call of another one, and is called from outside, is not compiled.
function hooks.request()
  local made = request()
  return made
end

-- Several in a row, since each way into Lua and out again costs as much as a small `request`. They are joined by a byte
-- that no request begins with. `made` has them, up to the first that is no string, after which, as after an error or an
-- end, no more are asked for.
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

-- An answer that has the same header fields as the last one, as most have, is not made anew: a table is filled with the
-- strings that are there already, by a function for just that number of them (see wrk.lua about loops).
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

-- Keeps names and values, in turn; says whether it could.
function hooks.remember(names_and_values)
  local count = #names_and_values
  if count > 2 * most_fields then
    return false
  end
  makers[count] = makers[count] or maker(count)
  make, fields = makers[count], names_and_values
  return true
end

-- How many parameters a function has, up to three: what it cannot see need not be made. All if it has `...`.
function hooks.parameters(of)
  local about = getinfo(of, "u")
  return about.isvararg and 3 or math.min(math.max(about.nparams, 1), 3)
end

-- Shows that many answers of one status to `response`, with the fields and the body that are kept, as long as it is the
-- function it is now; returns how many were not shown since it is another one. One for each number of parameters, so that
-- each is compiled for itself.
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

-- Most of what a small script leaves to be collected is younger than a request: to look through what stays is done more
-- rarely than Lua would, at the price of a little memory. A script that holds much is left alone.
if collectgarbage("count") < 8192 then
  collectgarbage("setpause", 400)
end

return hooks
