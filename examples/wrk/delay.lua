-- Each connection waits before each request, as a person does.
--
--   brunt -s delay.lua URL -- 10 30     between 10 and 30 ms

local least, most = 10, 30

function init(args)
  least, most = tonumber(args[1]) or least, tonumber(args[2]) or most
  math.randomseed(os.time())
end

function delay()
  return math.random(least, most)
end
