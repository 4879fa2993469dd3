-- Data for users, and modules beside the script.

local host, brunt, core, shared = ...

local yield = coroutine.yield
local wrong, shown, waiting = core.wrong, core.shown, core.waiting_user
local check_options, at_the_top = core.check_options, shared.at_the_top
local EXHAUSTED = host.operations.EXHAUSTED

local Data, Feeder = {}, {}
Data.__index, Feeder.__index = Data, Feeder

local function feeder(order)
  return function(self)
    at_the_top("a feeder")
    return setmetatable({ data = self, feeder = host.feeder(self.data, order) }, Feeder)
  end
end

Data.circular, Data.random = feeder("circular"), feeder("random")
Data.shuffled, Data.queue = feeder("shuffled"), feeder("queue")

function Data:length()
  return host.length(self.data)
end

-- The row after the last one that anybody was given. When a queue is empty, its scenario ends.
function Feeder:next()
  local place = host.next(self.feeder)
  while not place do
    waiting("a queue")
    yield(EXHAUSTED)
  end
  local data = self.data
  if data.rows then
    return data.rows[place]
  end
  local row = host.row(data.data, place)
  return data.meta and setmetatable(row, data.meta) or row
end

local function data_of(kind, name, options)
  at_the_top("brunt." .. kind)
  if type(name) ~= "string" then
    wrong("brunt." .. kind .. " takes the name of a file, not " .. shown(name))
  end
  check_options("brunt." .. kind, options, { columns = true, separator = true })
  local problem, data, columns = host.data(kind, name, options or {})
  if problem then
    wrong(problem)
  end
  local meta
  if columns then
    meta = {
      __index = function(_, column)
        wrong(name .. " has no column '" .. tostring(column) .. "'; it has " .. columns, true)
      end,
    }
  end
  return setmetatable({ data = data, meta = meta }, Data)
end

for _, kind in ipairs({ "csv", "jsonl", "lines" }) do
  brunt[kind] = function(name, options)
    return data_of(kind, name, options)
  end
end

-- `brunt.json` is a table with functions as well.
function shared.json_rows(name, options)
  return data_of("json", name, options)
end

function brunt.data(rows)
  at_the_top("brunt.data")
  if type(rows) ~= "table" or #rows == 0 then
    wrong("brunt.data takes a table of rows, with at least one")
  end
  return setmetatable({ data = host.rows(#rows), rows = rows }, Data)
end

-- Modules beside the script.
table.insert(package.loaders, 2, function(name)
  local file = name:gsub("%.", "/") .. ".lua"
  local text = host.module(file)
  if not text then
    return "\n\tno file '" .. file .. "' beside the script"
  end
  local chunk, problem = loadstring(text, "@" .. file)
  if not chunk then
    error(problem, 0)
  end
  return chunk
end)

package.loaded.brunt = brunt
