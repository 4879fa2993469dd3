-- Locals at the script's top that its scenarios assign, and tables there whose fields they assign. All users of a thread
-- share them, whereas in other tools each user has its own variables.

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

-- The opcodes that read a local of an outer function, and that assign a field by its name, learnt likewise. Fields with a
-- computed key are left out: users often have a row of their own in a table, such as cache[vu.id].
local reading, setting
if known then
  local sample = loadstring("local t return function(v) t.k = v end")()
  reading, setting = band(util.funcbc(sample, 1), 0xff), band(util.funcbc(sample, 2), 0xff)
end
-- How an instruction uses its first operand if it writes a register there.
local WRITES = 1

-- The outer local whose value stands in a register at a place of a function, if the text makes it plain.
local function outer_in(run, register, place)
  for before = place - 1, 1, -1 do
    local code, mode = util.funcbc(run, before)
    if band(mode, 7) == WRITES and band(rshift(code, 8), 0xff) == register then
      return band(code, 0xff) == reading and util.funcuvname(run, rshift(code, 16)) or nil
    end
  end
end

local function add(lines, name, line, field)
  if not lines[name] or line < lines[name].line then
    lines[name] = { line = line, field = field }
  end
end

-- Adds the outer locals that a function, or a function within it, assigns, and those of whose value it assigns a field: by
-- name, the first line that does so.
local function add_assigned(run, locals, tables)
  local info = util.funcinfo(run)
  for place = 1, info.bytecodes - 1 do
    local code = util.funcbc(run, place)
    local opcode = code and band(code, 0xff)
    if assigning[opcode] then
      add(locals, util.funcuvname(run, band(rshift(code, 8), 0xff)), util.funcinfo(run, place).currentline)
    elseif opcode and opcode == setting then
      local name, field = outer_in(run, rshift(code, 24), place), util.funck(run, -1 - band(rshift(code, 16), 0xff))
      if name then
        add(tables, name, util.funcinfo(run, place).currentline, field)
      end
    end
  end
  for place = 1, info.gcconsts do
    local constant = util.funck(run, -place)
    if type(constant) == "proto" then
      add_assigned(constant, locals, tables)
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
    local locals, tables = {}, {}
    add_assigned(value, locals, tables)
    for place = 1, 255 do
      local name, outer = getupvalue(value, place)
      if not name then
        break
      end
      -- A table with a metatable, such as brunt.user, says itself what an assignment is.
      local is_plain = type(outer) == "table" and getmetatable(outer) == nil
      local one = locals[name] or is_plain and tables[name]
      if one and not found[name] then
        found[name] = { name = name, file = info.source:sub(2), line = one.line, field = one.field }
      end
      look_through(outer, seen, found)
    end
  end
end

-- The locals at the top that scenarios assign, or whose fields they assign, with the places of the assignments.
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
