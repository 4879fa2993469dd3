-- Calls the hooks of a script. They are looked up each time, since scripts exchange them while they run; done here, that
-- is compiled together with them and costs next to nothing.

local hooks = {}

-- Not `return request()`: a function that ends with a call of another one, and is called from outside, is not compiled.
function hooks.request()
  local made = request()
  return made
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
  return assert(loadstring(code, "=hooks"))()
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

-- Calls `response` with the fields that are kept, and with the body, or the one before if none is given.
function hooks.again(status, body)
  if body then
    last_body = body
  end
  response(status, make(fields), last_body)
end

-- How many parameters the function `response` has: what it cannot see need not be made. All of them if it has `...`.
function hooks.arity()
  local about = debug.getinfo(response, "u")
  return about.isvararg and 3 or about.nparams
end

-- Calls `response` with less than everything as long as it is the function that was asked about; else says so.
function hooks.narrow()
  local known = response
  return function(status, headers)
    local now = response
    if now ~= known then
      return true
    end
    now(status, headers)
  end
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
