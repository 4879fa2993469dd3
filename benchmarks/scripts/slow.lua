-- Burns CPU for each request: a script that is the limit, and not the target.

local function burn(steps)
  local sum = 0
  for step = 1, steps do
    sum = sum + math.sin(step)
  end
  return sum
end

function request()
  return wrk.format("GET", "/" .. (burn(20000) > 1e9 and "never" or ""))
end
