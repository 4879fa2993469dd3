-- Checks whose names are in the script's text. Lua keeps no key whose value is nil, so a table of checks lacks it; the
-- text has it: in the call of brunt.check, before it, or in the call of a function that hands its argument on.

local host, brunt, core, shared = ...

local getinfo = debug.getinfo

-- By source: the tables of checks written in calls of brunt.check, by the line of the call; and the lines of calls that
-- hand on a table of the caller's.
local written, handed_on = {}, {}
-- By a check's name: the most checks of a table with it. And the most checks of a table with computed names.
local most, most_computed = {}, 0

function shared.learn_checks(source, tables)
  local of_source = {}
  written[source], handed_on[source] = of_source, {}
  for _, line in ipairs(tables.handed_on) do
    handed_on[source][line] = true
  end
  for _, one in ipairs(tables) do
    local names, count = {}, #one.names + one.computed
    for _, name in ipairs(one.names) do
      names[name] = true
      most[name] = math.max(most[name] or 0, count)
    end
    if one.computed > 0 then
      most_computed = math.max(most_computed, count)
    end
    local of_line = of_source[one.line] or {}
    of_source[one.line] = of_line
    of_line[#of_line + 1] = { names = names, fixed = #one.names, computed = one.computed, count = count }
  end
end

-- The source and the line of the innermost function outside of the library whose table is not one of its caller's.
local function place()
  for level = 3, 50 do
    local info = getinfo(level, "Sl")
    if not info then
      return nil
    elseif info.currentline > 0 and info.source:sub(1, 6) ~= "=brunt" then
      local lines = handed_on[info.source]
      if not (lines and lines[info.currentline]) then
        return info.source, info.currentline
      end
    end
  end
end

-- Reads the texts of the files that call brunt.check, or a function that does, each once.
function shared.learn_caller()
  for level = 2, 50 do
    local info = getinfo(level, "S")
    if not info then
      return
    end
    local source = info.source
    if info.what ~= "C" and source:sub(1, 6) ~= "=brunt" and not written[source] then
      shared.learn_checks(source, host.written_checks((source:gsub("^@?%.?/?", ""))))
    end
  end
end

-- Whether a given table of checks can be the one in the text: the text has all of its names.
local function fits(one, held_by_name)
  local others = 0
  for known in next, held_by_name do
    others = others + (one.names[known] and 0 or 1)
  end
  return others <= one.computed
end

-- Whether two tables of a line cannot be told apart: each lacks what the other lacks.
local function is_same(one, other)
  if one.count ~= other.count or one.computed > 0 or other.computed > 0 then
    return false
  end
  for name in next, one.names do
    if not other.names[name] then
      return false
    end
  end
  return true
end

-- The table in the text on this line that fits the given one; nil if there is none.
local function written_at(of_line, held_by_name)
  local found
  for _, one in ipairs(of_line) do
    if fits(one, held_by_name) then
      if found and not is_same(found, one) then
        core.wrong("several calls of brunt.check stand on this line, and which of them lacks a value cannot be told: "
          .. "write each on a line of its own", true)
      end
      found = found or one
    end
  end
  return found
end

-- The names of the checks that the text has and a table of `count` checks, `name` among them, lacks; nil if it has all.
-- A check with a computed name is named by its line.
function shared.missing_checks(held_by_name, name, count)
  local expected = name == nil and 1 or most[name] or most_computed
  if count >= expected then
    return nil
  end
  local source, line = place()
  local of_line = source and written[source] and written[source][line]
  local there = of_line and written_at(of_line, held_by_name)
  if not there or count >= there.count then
    return nil
  end
  local missing, fixed = {}, 0
  for known in next, there.names do
    if held_by_name[known] == nil then
      missing[#missing + 1] = known
    else
      fixed = fixed + 1
    end
  end
  table.sort(missing)
  for _ = 1, there.computed - (count - fixed) do
    missing[#missing + 1] = "without a value, " .. source:gsub("^[@=]", "") .. ":" .. line
  end
  return missing
end
