-- Every request has a path of its own, and a header that says which it is.
--
--   brunt -s paths.lua URL -- 1000      as many paths, in turn

local paths, number = 1000, 0

function init(args)
  paths = tonumber(args[1]) or paths
end

function request()
  number = number % paths + 1
  wrk.headers["X-Request"] = number
  return wrk.format("GET", wrk.path .. "?item=" .. number)
end
