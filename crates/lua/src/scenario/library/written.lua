-- Checks whose names stand in the script's text. Lua keeps no key whose value is nil, so that a table of checks lacks it; the text has it.

local host, brunt, core, shared = ...

local getinfo = debug.getinfo

-- By source: the tables of checks that are written where brunt.check is called, by the line of the call.
local written = {}
-- By a check's name: how many checks a table with it has at most.
local most = {}

function shared.learn_checks(source, tables)
  local of_source = {}
  written[source] = of_source
  for _, one in ipairs(tables) do
    local names = {}
    for _, name in ipairs(one.names) do
      names[name] = true
      most[name] = math.max(most[name] or 0, #one.names)
    end
    of_source[one.line] = { names = names, count = #one.names }
  end
end

-- Source and line of the innermost function that is not ours.
local function place()
  for level = 3, 50 do
    local info = getinfo(level, "Sl")
    if not info then
      return nil
    elseif info.currentline > 0 and info.source:sub(1, 6) ~= "=brunt" then
      return info.source, info.currentline
    end
  end
end

-- Reads the text of who calls brunt.check, once.
function shared.learn_caller()
  local source = place()
  if source and not written[source] then
    shared.learn_checks(source, host.written_checks((source:gsub("^@?%.?/?", ""))))
  end
end

-- The names of the checks that the text has for a table of `count` checks, `name` among them, and the table has not; nil if it has all.
function shared.missing_checks(held_by_name, name, count)
  local expected = name == nil and 1 or most[name]
  if not expected or count >= expected then
    return nil
  end
  local source, line = place()
  local there = source and written[source] and written[source][line]
  if not there or count >= there.count then
    return nil
  end
  for known in next, held_by_name do
    if not there.names[known] then
      return nil
    end
  end
  local missing = {}
  for known in next, there.names do
    if held_by_name[known] == nil then
      missing[#missing + 1] = known
    end
  end
  table.sort(missing)
  return missing
end
