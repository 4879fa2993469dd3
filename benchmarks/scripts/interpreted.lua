-- counter.lua without the compiler: which traces it makes depends on timing, and valgrind takes long to follow it.
jit.off()

local counter = 0
local statuses = {}

function request()
  counter = counter + 1
  return wrk.format("GET", "/item/" .. counter)
end

function response(status, headers, body)
  statuses[status] = (statuses[status] or 0) + 1
end
