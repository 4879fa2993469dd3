-- Each request has a path of its own, and each answer's status is counted: what most scripts of wrk come down to.

local counter = 0
local statuses = {}

function request()
  counter = counter + 1
  return wrk.format("GET", "/item/" .. counter)
end

function response(status, headers, body)
  statuses[status] = (statuses[status] or 0) + 1
end
