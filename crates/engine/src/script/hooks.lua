-- Calls the hooks of a script. They are looked up each time, since scripts exchange them while they run; done here, that
-- is compiled together with them and costs next to nothing.

local hooks = {}

function hooks.request()
  return request()
end

function hooks.response(status, headers, body)
  response(status, headers, body)
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
  return delay()
end

return hooks
