-- Figures of a script's own: counters, rates, trends and gauges, which users record into.

local host, brunt, core, shared = ...

local wrong, raise, shown = core.wrong, core.raise, core.shown
local record, me = host.record, core.user

-- By name: its kind, and the object that the script has.
local declared = {}

local function value_of(whose, value)
  if type(value) ~= "number" or value ~= value or value == 1 / 0 or value == -1 / 0 then
    if shared.is_rehearsing() then
      return 0
    end
    raise(whose .. ": a value must be a number, not " .. shown(value))
  end
  return value
end

local function keep(self, what, value)
  local user = me(what)
  record(self.number, value, user.now)
end

local Counter, Rate, Trend, Gauge = {}, {}, {}, {}
local kinds = { counter = Counter, rate = Rate, trend = Trend, gauge = Gauge }
for _, methods in pairs(kinds) do
  methods.__index = methods
end

-- Adds to the sum: 1 unless it says otherwise. A sum only grows: by that it is known while the run goes on what it cannot be any more.
function Counter:add(amount)
  amount = amount == nil and 1 or value_of("a counter", amount)
  if amount < 0 then
    raise("a counter takes amounts of 0 and above, not " .. shown(amount) .. ": what falls again is a gauge")
  end
  keep(self, "adding to a counter", amount)
end

-- One more that is true, or not.
function Rate:add(held)
  keep(self, "adding to a rate", held and 1 or 0)
end

-- One more value, of 0 or above.
function Trend:add(value)
  value = value_of("a trend", value)
  if value < 0 then
    raise("a trend takes values of 0 and above, not " .. shown(value))
  end
  keep(self, "adding to a trend", value)
end

-- What the value is from now on.
function Gauge:set(value)
  keep(self, "setting a gauge", value_of("a gauge", value))
end

local function declare(kind, name, options)
  shared.at_the_top("brunt." .. kind)
  if type(name) ~= "string" or name == "" then
    wrong("brunt." .. kind .. " takes the figure's name, not " .. shown(name))
  end
  core.check_options("brunt." .. kind, options, { unit = true })
  local known = declared[name]
  if known then
    if known.kind ~= kind then
      wrong("'" .. name .. "' is a " .. known.kind .. " already")
    end
    return known.figure
  end
  local problem, number = host.own(kind, name, options and tostring(options.unit or "") or "")
  if problem then
    wrong(problem)
  end
  local figure = setmetatable({ number = number }, kinds[kind])
  declared[name] = { kind = kind, figure = figure }
  return figure
end

for _, kind in ipairs({ "counter", "trend", "gauge" }) do
  brunt[kind] = function(name, options)
    return declare(kind, name, options)
  end
end

-- `brunt.rate` with a name is a figure; with a number it is a step of an injection.
local step = brunt.rate
function brunt.rate(name, options)
  if type(name) == "string" then
    return declare("rate", name, options)
  end
  return step(name, options)
end
