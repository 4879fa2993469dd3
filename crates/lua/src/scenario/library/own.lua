-- A script's own figures: counters, rates, trends and gauges, into which users record.

local host, brunt, core, shared = ...

local wrong, raise, shown = core.wrong, core.raise, core.shown
local record, me = host.record, core.user

-- By name: the kind of the figure, and the script's object for it.
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

-- The most sets of tags that one figure tells apart; further ones count together.
local MOST_TAGGED = 20

-- The number of the figure for values with these tags: `basket{page=a}` of `basket`. False where the script has as many
-- figures as it may.
local function tagged(self, tags)
  if type(tags) ~= "table" then
    wrong("tags of a figure must be a table such as { page = \"a\" }, not " .. shown(tags), true)
  end
  local texts = {}
  for key, value in pairs(tags) do
    texts[#texts + 1] = tostring(key) .. "=" .. (core.text_of(value) or tostring(value))
  end
  table.sort(texts)
  local key = table.concat(texts, ",")
  local number = self.tagged[key]
  if number == nil and self.tags >= MOST_TAGGED then
    key = "(others)"
    number = self.tagged[key]
  end
  if number == nil then
    local problem, made = host.own(self.kind, self.name .. "{" .. key .. "}", self.unit, true)
    number = not problem and made
    self.tagged[key], self.tags = number, problem and MOST_TAGGED or self.tags + 1
  end
  return number
end

local function keep(self, what, value, tags)
  local user = me(what)
  if tags ~= nil and not shared.is_rehearsing() then
    local number = tagged(self, tags)
    if number then
      record(number, value, user.now)
    end
  end
  record(self.number, value, user.now)
end

local function check_colon(self, methods, method)
  if getmetatable(self) ~= methods then
    wrong("write figure:" .. method .. "(value), with a colon", true)
  end
end

local Counter, Rate, Trend, Gauge = core.object(), core.object(), core.object(), core.object()
local kinds = { counter = Counter, rate = Rate, trend = Trend, gauge = Gauge }
for _, methods in pairs(kinds) do
  methods.__index = methods
end

-- Adds to the sum: 1 by default. A sum only grows, so that a threshold on it can be decided while the run goes on.
function Counter:add(amount, tags)
  check_colon(self, Counter, "add")
  amount = amount == nil and 1 or value_of("a counter", amount)
  if amount < 0 then
    raise("a counter takes amounts of 0 and above, not " .. shown(amount) .. ": what falls again is a gauge")
  end
  keep(self, "adding to a counter", amount, tags)
end

-- Records a value that is true or false.
function Rate:add(held, tags)
  check_colon(self, Rate, "add")
  keep(self, "adding to a rate", held and 1 or 0, tags)
end

-- Records a value of 0 or above.
function Trend:add(value, tags)
  check_colon(self, Trend, "add")
  value = value_of("a trend", value)
  if value < 0 then
    raise("a trend takes values of 0 and above, not " .. shown(value))
  end
  keep(self, "adding to a trend", value, tags)
end

-- Sets the current value.
function Gauge:set(value, tags)
  check_colon(self, Gauge, "set")
  keep(self, "setting a gauge", value_of("a gauge", value), tags)
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
  local unit = options and tostring(options.unit or "") or ""
  local problem, number = host.own(kind, name, unit, false)
  if problem then
    wrong(problem)
  end
  local figure = setmetatable({ number = number, kind = kind, name = name, unit = unit, tagged = {}, tags = 0 }, kinds[kind])
  declared[name] = { kind = kind, figure = figure }
  return figure
end

-- The part of a figure of the script that a condition is most often about, such as "share"; nil where there is no such figure.
function shared.main_part(name)
  local parts = { counter = "sum", rate = "share", trend = "p95", gauge = "last" }
  return declared[name] and parts[declared[name].kind]
end

for _, kind in ipairs({ "counter", "trend", "gauge" }) do
  brunt[kind] = function(name, options)
    return declare(kind, name, options)
  end
end

-- `brunt.rate` with a name makes a figure; with a number it makes a step of an injection.
local step = brunt.rate
function brunt.rate(name, ...)
  if type(name) == "string" then
    return declare("rate", name, (...))
  end
  return step(name, ...)
end
