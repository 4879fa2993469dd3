-- Data for users, and modules beside the script.

local host, brunt, core, shared = ...

local yield = coroutine.yield
local wrong, shown, waiting = core.wrong, core.shown, core.waiting_user
local check_options, at_the_top = core.check_options, shared.at_the_top
local EXHAUSTED, STOP = host.operations.EXHAUSTED, host.operations.STOP

local Data, Feeder = core.object(), core.object()
Feeder.__index = Feeder
Feeder.__call = function()
  wrong("a feeder gives its next row by feeder:next()", true)
end

-- A row. It belongs to its user: no other user sees changes made to it.
local function row_of(data, place)
  if data.rows then
    return shared.copied(data.rows[place])
  end
  local row = host.row(data.data, place)
  return data.meta and setmetatable(row, data.meta) or row
end

-- Rows by their numbers, beside the methods.
Data.__index = function(self, key)
  if type(key) ~= "number" then
    return Data[key]
  elseif key % 1 ~= 0 then
    wrong("a row has a whole number, not " .. key .. ": data:length() says how many rows there are, and # does not")
  end
  return key >= 1 and key <= self:length() and row_of(self, key) or nil
end

-- Lua's own, and the rows of data in their order.
local plain_ipairs = ipairs
local function next_row(data, place)
  local row = data[place + 1]
  if row ~= nil then
    return place + 1, row
  end
end

local function ipairs_of(list)
  if getmetatable(list) == Data then
    return next_row, list, 0
  end
  return plain_ipairs(list)
end
_G.ipairs = ipairs_of

local function feeder(order)
  return function(self)
    at_the_top("a feeder")
    return setmetatable({ data = self, feeder = host.feeder(self.data, order) }, Feeder)
  end
end

Data.circular, Data.random, Data.shuffled = feeder("circular"), feeder("random"), feeder("shuffled")

-- A feeder that comes to an end, and its action then.
local function ending(whose, self, options, ends)
  at_the_top("a feeder")
  check_options(whose, options, { at_end = true })
  local at_end = options and options.at_end
  if at_end == nil then
    at_end = ends.unless_said
  elseif not ends[at_end] then
    wrong(whose .. ": at_end must be " .. ends.known .. ", not " .. shown(at_end))
  end
  local order = at_end == "repeat" and "circular" or "queue"
  -- A script that does not say so has not meant its run to end with its rows.
  local is_meant = options ~= nil and options.at_end ~= nil
  return { data = self, feeder = host.feeder(self.data, order), at_end = at_end, is_meant = is_meant }
end

local of_queue = { stop_scenario = true, stop_run = true, unless_said = "stop_scenario" }
of_queue.known = '"stop_scenario" or "stop_run" (:circular() begins again)'
local of_user = { stop_run = true, ["repeat"] = true, unless_said = "stop_run", known = '"stop_run" or "repeat"' }

function Data:queue(options)
  return setmetatable(ending("queue", self, options, of_queue), Feeder)
end

function Data:per_user(options)
  local own = ending("per_user", self, options, of_user)
  own.is_users = true
  return setmetatable(own, Feeder)
end

function Data:length()
  return host.length(self.data)
end

-- The place of the next row of a feeder that all users share. Where there is none, the scenario or the run ends.
local function next_place(self)
  local place = host.next(self.feeder)
  while not place do
    local user = waiting("a queue")
    if self.at_end == "stop_run" then
      yield(STOP, "all " .. self.data:length() .. " rows of " .. self.data.name .. " were given out", self.is_meant)
    else
      yield(EXHAUSTED)
      if user.task then
        -- The user ends with its current iteration.
        error(shared.EXIT, 0)
      end
    end
  end
  return place
end

-- The place of the row that the user keeps for its whole life.
local function own_place(self)
  local places = core.kept("a row of a user's own", "rows")
  local place = places[self]
  if not place then
    place = next_place(self)
    places[self] = place
  end
  return place
end

function Feeder:next()
  return row_of(self.data, self.is_users and own_place(self) or next_place(self))
end

core.with_colon("data", Data)
core.with_colon("feeder", Feeder)

local function rows_of(kind, name, options)
  local problem, data, columns = host.data(kind, name, options or {})
  if problem then
    wrong(problem)
  end
  if kind == "sqlite" then
    -- All rows of a query have the same columns.
    columns = {}
    for column in pairs(host.row(data, 1)) do
      columns[#columns + 1] = column
    end
    table.sort(columns)
    columns = table.concat(columns, ", ")
  end
  local meta
  if columns then
    meta = {
      __index = function(_, column)
        wrong(name .. " has no column '" .. tostring(column) .. "'; it has " .. columns, true)
      end,
    }
  end
  return setmetatable({ data = data, meta = meta, name = name }, Data)
end

local file_options = {
  csv = { columns = true, separator = true, stream = true },
  json = {},
  jsonl = { stream = true },
  lines = { stream = true },
}

local function data_of(kind, name, options)
  at_the_top("brunt." .. kind)
  if type(name) ~= "string" then
    wrong("brunt." .. kind .. " takes the name of a file, not " .. shown(name))
  end
  check_options("brunt." .. kind, options, file_options[kind])
  if options and options.stream ~= nil and type(options.stream) ~= "boolean" then
    wrong("brunt." .. kind .. ": stream must be true or false, not " .. shown(options.stream))
  end
  return rows_of(kind, name, options)
end

-- Rows from a query or another server, whose results are kept in the plan.
function brunt.sqlite(file, query)
  at_the_top("brunt.sqlite")
  if type(file) ~= "string" or type(query) ~= "string" then
    wrong("brunt.sqlite takes the name of a file and a query, not " .. shown(file) .. " and " .. shown(query))
  end
  return rows_of("sqlite", file, { query = query })
end

function brunt.redis_list(options)
  at_the_top("brunt.redis_list")
  if type(options) ~= "table" then
    wrong("brunt.redis_list takes { address = \"127.0.0.1:6379\", key = \"users\" }, not " .. shown(options))
  end
  return rows_of("redis_list", tostring(options.key), options)
end

for _, kind in ipairs({ "csv", "jsonl", "lines" }) do
  brunt[kind] = function(name, options)
    return data_of(kind, name, options)
  end
end

-- `brunt.json` is also a table with functions.
function shared.json_rows(name, options)
  return data_of("json", name, options)
end

function brunt.data(rows)
  at_the_top("brunt.data")
  if type(rows) ~= "table" or #rows == 0 then
    wrong("brunt.data takes a table of rows, with at least one")
  end
  return setmetatable({ data = host.rows(#rows), rows = rows, name = "brunt.data" }, Data)
end

-- The content of a file beside the script, byte for byte: for bodies and uploads.
function brunt.file(name)
  at_the_top("brunt.file")
  local content = type(name) == "string" and host.module(name)
  if not content then
    wrong("brunt.file: there is no file " .. shown(name) .. " beside the script", true)
  end
  shared.learn_file(content)
  return content
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
