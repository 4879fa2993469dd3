-- The threads take turns over several addresses of a service.
--
--   brunt -s addresses.lua URL                     all addresses of the URL's host
--   PORTS="8081 8082" brunt -s addresses.lua URL    and these ports of it

local addresses, turn = nil, 0

local function find()
  local found = wrk.lookup(wrk.host, wrk.port or wrk.scheme)
  for port in (os.getenv("PORTS") or ""):gmatch("%d+") do
    for _, address in ipairs(wrk.lookup(wrk.host, port)) do
      table.insert(found, address)
    end
  end
  for place = #found, 1, -1 do
    if not wrk.connect(found[place]) then
      table.remove(found, place)
    end
  end
  return found
end

function setup(thread)
  addresses = addresses or find()
  turn = turn % #addresses + 1
  thread.addr = addresses[turn]
  print("a thread goes to " .. tostring(thread.addr))
end
