-- The objects given to scripts: addresses, threads and statistics. They are proxies, so that their `type` is "userdata"
-- as with wrk, and so that `#` works on them. Functions from outside implement their methods.

local objects = {}
-- The sandbox takes this function away from scripts.
local newproxy = newproxy

local held = setmetatable({}, { __mode = "k" })

local function class(metatable)
  local model = newproxy(true)
  for name, method in pairs(metatable) do
    getmetatable(model)[name] = method
  end
  return function(what)
    local object = newproxy(model)
    held[object] = what
    return object
  end
end

-- An address is held as "host port".
local new_address = class({
  __tostring = function(self)
    return (held[self]:gsub(" ", ":"))
  end,
})

objects.address = new_address

function objects.addresses(texts)
  for place, text in ipairs(texts) do
    texts[place] = new_address(text)
  end
  return texts
end

local function text_of(address)
  local text = held[address]
  if type(text) ~= "string" then
    error("expected an address, such as wrk.lookup finds, got " .. type(address), 3)
  end
  return text
end

function objects.lookup(lookup)
  return function(host, service)
    local found, problem = lookup(tostring(host), service and tostring(service))
    if not found then
      error(problem, 2)
    end
    return objects.addresses(found)
  end
end

function objects.connect(connects)
  return function(address)
    return connects(text_of(address))
  end
end

-- A thread holds the functions that reach into its worker.
local methods = {}

function methods.get(self, name)
  local value, problem = held[self].get(name)
  if problem then
    error(problem, 2)
  end
  return value
end

function methods.set(self, name, value)
  local problem = held[self].set(name, value)
  if problem then
    error(problem, 2)
  end
end

function methods.stop(self)
  held[self].stop()
  -- A thread's state knows only its own thread.
  objects.stopped = true
end

objects.thread = class({
  __index = function(self, name)
    if name == "addr" then
      local text = held[self].address()
      return text and new_address(text)
    end
    return methods[name]
  end,
  __newindex = function(self, name, value)
    if name ~= "addr" then
      error("cannot set '" .. tostring(name) .. "' on thread; use thread:set(name, value)", 2)
    end
    held[self].redirect(text_of(value))
  end,
})

-- Statistics are a table of figures, and the functions `percentile` and `at`.
local function percentile(self, p)
  return held[self].percentile(p)
end

objects.stats = class({
  __index = function(self, name)
    if name == "percentile" then
      return percentile
    end
    return held[self].figures[name]
  end,
  __call = function(self, place)
    return held[self].at(place)
  end,
  __len = function(self)
    return held[self].length
  end,
})

return objects
