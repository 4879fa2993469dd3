-- Globals that a script reads and nothing sets: most often a misspelt local.

local host, brunt, core, shared = ...

local compile, next, pcall, rawget, type = loadstring, next, pcall, rawget, type
local band, rshift = bit.band, bit.rshift
local globals = _G
local known, util = pcall(require, "jit.util")

-- The names of Lua's own library; the sandbox removes some of them later.
local of_lua = {}
for name in next, globals do
  of_lua[name] = true
end

-- The opcode at a place of a function with this text.
local function opcode(text, place)
  return band(util.funcbc(compile("return function() " .. text .. " end")(), place), 0xff)
end

local READS, SETS, TEXT, CALLS, SETS_FIELD, tests = nil, nil, nil, {}, nil, {}
if known then
  READS, SETS, TEXT = opcode("return x", 1), opcode("x = 1", 2), opcode("return 'x'", 1)
  SETS_FIELD = opcode("local t = {} t.x = 1", 3)
  CALLS[opcode("local y = type(x)", 3)] = true
  CALLS[opcode("return type(x)", 3)] = true
  for _, text in ipairs({
    "if x then y() end", "if not x then y() end", "local y = x or 1", "local y = x and 1", "local y = not x", "return x or 1",
    "return x and 1", "return not x", "if x == nil then y() end", "if x ~= nil then y() end", "return z, x or 1",
  }) do
    tests[opcode(text, text:find("z,", 1, true) and 3 or 2)] = true
  end
end

-- What sets globals by computed names, and what changes which table a function's globals are in.
local COMPUTES = { _G = true, rawset = true, load = true, loadstring = true, dofile = true, loadfile = true }
local MOVES = { setfenv = true, module = true }

-- The words of a text that may be names, or code.
local function add_words(words, text)
  for word in text:gmatch("[%a_][%w_]*") do
    words[word] = true
  end
end

-- Adds what a function, and the functions within it, do with globals.
local function look_through(run, found)
  local info = util.funcinfo(run)
  local before
  for place = 1, info.bytecodes - 1 do
    local code = util.funcbc(run, place)
    local operation, register, operand = band(code, 0xff), band(rshift(code, 8), 0xff), rshift(code, 16)
    local name
    if operation == READS or operation == SETS then
      name = util.funck(run, -1 - operand)
    end
    if operation == SETS then
      found.set[name] = true
    elseif operation == READS then
      local after = util.funcbc(run, place + 1)
      local next_operation = after and band(after, 0xff)
      local is_tested = tests[next_operation] and (band(rshift(after, 8), 0xff) == register or rshift(after, 16) == register)
      if is_tested or before == "type" and CALLS[next_operation] then
        found.tested[name] = true
      else
        found.read[#found.read + 1] = { name = name, line = util.funcinfo(run, place).currentline }
      end
      found.computes = found.computes or COMPUTES[name]
      found.moves = found.moves or MOVES[name]
    elseif operation == TEXT then
      add_words(found.words, util.funck(run, -1 - operand))
    elseif operation == SETS_FIELD then
      found.words[util.funck(run, -1 - band(operand, 0xff))] = true
    end
    before = operation == READS and name or nil
  end
  for place = 1, info.gcconsts do
    local constant = util.funck(run, -place)
    if type(constant) == "proto" then
      look_through(constant, found)
    elseif type(constant) == "table" then
      for key, value in next, constant do
        found.words[key], found.words[value] = true, true
      end
    end
  end
end

-- The names of locals in a script's text, each with the first line that has it: near enough for advice.
local function locals_of(text)
  local locals, line = {}, 0
  local function add(names)
    for name in names:gmatch("[%a_][%w_]*") do
      locals[name] = locals[name] or line
    end
  end
  for written in (text .. "\n"):gmatch("(.-)\n") do
    line = line + 1
    local code = written:gsub("%-%-.*", "")
    for _, pattern in ipairs({
      "const%s+([%a_][%w_%s,]*)", "local%s+function%s+([%w_]+)", "local%s+([%a_][%w_%s,]*)", "function[%s%w_.:]*%(([%w_%s,]*)", "for%s+([%w_%s,]+)%s+in%s", "for%s+([%w_]+)%s*=",
    }) do
      for names in code:gmatch(pattern) do
        add((names:gsub("^function%f[%s].*", "")))
      end
    end
  end
  return locals
end

-- Whether a global has a value now, whatever a metatable of the globals says to that.
local function is_set(name)
  if rawget(globals, name) ~= nil then
    return true
  end
  local fine, value = pcall(function()
    return globals[name]
  end)
  return fine and value ~= nil
end

-- What to write in place of a global that is not set; empty where nothing is near.
local function advice(name, locals, set)
  local written = shared.written_for(name)
  if written then
    return "; write " .. written
  elseif of_lua[name] then
    return " in the sandbox"
  elseif locals[name] then
    return "; the local of line " .. locals[name] .. " does not reach here"
  end
  local names = {}
  for _, from in ipairs({ locals, set, globals }) do
    for one in next, from do
      names[#names + 1] = type(one) == "string" and one or nil
    end
  end
  table.sort(names)
  return host.unknown_name("", name, names):match("; did you mean .*") or ""
end

-- The globals that the files of a script read and nothing sets: a list of tables with `file`, `line` and `problem`, each name once a
-- file. A name that is tested anywhere (`if x then`, `x or 1`, `type(x)`) may be missing. `files` have `name` and `text`.
function shared.unset_globals(files)
  local all, set, tested, found_in = {}, {}, {}, {}
  for place, file in ipairs(known and files or {}) do
    local chunk = compile((file.text:gsub("^#[^\n]*", "")), "@" .. file.name)
    local found = { read = {}, set = set, tested = tested, words = {} }
    if chunk then
      look_through(chunk, found)
    end
    if found.computes then
      for word in next, found.words do
        set[word] = true
      end
    end
    found_in[place] = found
  end
  for place, found in ipairs(found_in) do
    local file, locals, told = files[place], nil, {}
    for _, one in ipairs(found.moves and {} or found.read) do
      if not (set[one.name] or tested[one.name] or told[one.name]) and not is_set(one.name) then
        told[one.name] = true
        locals = locals or locals_of(file.text)
        all[#all + 1] = {
          file = file.name, line = one.line,
          problem = "nothing sets the global '" .. one.name .. "'" .. advice(one.name, locals, set),
        }
      end
    end
  end
  return all
end
