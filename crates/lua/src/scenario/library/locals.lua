-- Locals at the script's top that its scenarios assign. All users of a thread share them, whereas in other tools each
-- user has its own variables.

local host, brunt, core, shared = ...

local getinfo, getupvalue = debug.getinfo, debug.getupvalue
local band, rshift = bit.band, bit.rshift
local known, util = pcall(require, "jit.util")

-- The opcodes that assign a local of an outer function, learnt from functions that do so.
local assigning = {}
for _, assignment in ipairs(known and { "x = v", "x = 'text'", "x = 1.5", "x = nil" } or {}) do
  local sample = loadstring("local x return function(v) " .. assignment .. " end")()
  assigning[band(util.funcbc(sample, 1), 0xff)] = true
end

-- Adds the outer locals that a function, or a function within it, assigns: by name, the first line that does so.
local function add_assigned(run, lines)
  local info = util.funcinfo(run)
  for place = 1, info.bytecodes - 1 do
    local code = util.funcbc(run, place)
    if code and assigning[band(code, 0xff)] then
      local name, line = util.funcuvname(run, band(rshift(code, 8), 0xff)), util.funcinfo(run, place).currentline
      lines[name] = math.min(lines[name] or line, line)
    end
  end
  for place = 1, info.gcconsts do
    local constant = util.funck(run, -place)
    if type(constant) == "proto" then
      add_assigned(constant, lines)
    end
  end
end

-- Searches a function and the functions that it reaches by its outer locals, which all belong to the top of the script
-- or of a module.
local function look_through(value, seen, found)
  if type(value) == "table" and not seen[value] then
    seen[value] = true
    for _, one in next, value do
      if type(one) == "function" then
        look_through(one, seen, found)
      end
    end
  elseif type(value) == "function" and not seen[value] then
    seen[value] = true
    local info = getinfo(value, "S")
    if info.what == "C" or info.source:sub(1, 6) == "=brunt" then
      return
    end
    local assigned = {}
    add_assigned(value, assigned)
    for place = 1, 255 do
      local name, outer = getupvalue(value, place)
      if not name then
        break
      end
      if assigned[name] and not found[name] then
        found[name] = { name = name, file = info.source:sub(2), line = assigned[name] }
      end
      look_through(outer, seen, found)
    end
  end
end

-- The locals at the top that scenarios assign, with the places of the assignments.
function shared.assigned_locals()
  local found, seen, all = {}, {}, {}
  for _, scenario in ipairs(known and shared.scenarios or {}) do
    look_through(scenario.run, seen, found)
  end
  for _, one in next, found do
    all[#all + 1] = one
  end
  table.sort(all, function(one, other)
    return one.name < other.name
  end)
  return all
end
