-- Closes the sandbox around a state's globals. The globals that stay can neither reach files, programs, the environment
-- or code other than Lua's, nor inspect functions. It is called when all of our code has been loaded, and before the
-- script is: our code keeps whatever else it needs in locals, out of the script's reach.

local source_of = ...

local load, error, type, gsub, next, rawset = load, error, type, string.gsub, next, rawset
local native_require, globals = require, _G

local KEPT = {
  "_VERSION", "assert", "collectgarbage", "error", "getmetatable", "ipairs", "next", "pairs", "pcall", "print", "rawequal",
  "rawget", "rawset", "select", "setmetatable", "tonumber", "tostring", "type", "unpack", "xpcall", "bit", "coroutine",
  "math", "string", "table", "wrk",
}

local function only(from, names)
  local kept = {}
  for _, name in ipairs(names) do
    kept[name] = from[name]
  end
  return kept
end

local kept = only(globals, KEPT)
kept._G = globals
kept.os = only(os, { "clock", "date", "difftime", "time" })
kept.jit = only(jit, { "arch", "flush", "off", "on", "os", "status", "version", "version_num" })

-- Modules that scripts can require, by name. LuaJIT's buffers ("string.buffer") are left out: they give pointers.
local loaded = only(kept, { "_G", "bit", "coroutine", "jit", "math", "os", "string", "table", "wrk" })
loaded.brunt = package.loaded.brunt
for _, name in ipairs({ "table.clear", "table.new" }) do
  loaded[name] = native_require(name)
end
kept.package = { loaded = loaded }
loaded.package = kept.package

-- LuaJIT does not verify bytecode: loading it can write into memory. So no function makes it, and none accepts it.
string.dump = nil

-- Lua's own, limited to text.
function kept.load(chunk, name, _, environment)
  if environment == nil then
    return load(chunk, name, "t")
  end
  return load(chunk, name, "t", environment)
end

function kept.loadstring(chunk, name)
  if type(chunk) ~= "string" then
    error("bad argument #1 to 'loadstring' (string expected, got " .. type(chunk) .. ")", 2)
  end
  return load(chunk, name, "t")
end

local LOADING = {}

-- Lua's own, limited to Lua files that belong to the script.
function kept.require(name)
  if type(name) ~= "string" then
    error("bad argument #1 to 'require' (string expected, got " .. type(name) .. ")", 2)
  end
  local known = loaded[name]
  if known == LOADING then
    error("loop or previous error loading module '" .. name .. "'", 2)
  elseif known ~= nil then
    return known
  end
  local file = gsub(name, "%.", "/") .. ".lua"
  local text = source_of(file)
  if not text then
    error("module '" .. name .. "' is not in the sandbox, and there is no file '" .. file .. "' that belongs to the script", 2)
  end
  local chunk, problem = load(text, "@" .. file, "t")
  if not chunk then
    error(problem, 0)
  end
  loaded[name] = LOADING
  local result = chunk(name)
  if result ~= nil then
    loaded[name] = result
  elseif loaded[name] == LOADING then
    loaded[name] = true
  end
  return loaded[name]
end

for name in next, globals do
  globals[name] = nil
end
for name, value in next, kept do
  rawset(globals, name, value)
end
