-- `brunt.http`: sessions over HTTP. The engine sends requests and reads answers; what browsers do with them is here.

local core = ...

local next, pairs, setmetatable, type = next, pairs, setmetatable, type
local call, call_prepared, read = core.call, core.call_prepared, core.read
local wrong, raise, check_options, reading = core.wrong, core.raise, core.check_options, core.reading
local misused = core.misused
local byte, find, match, gsub, lower, sub = string.byte, string.find, string.match, string.gsub, string.lower, string.sub
-- A whole URL, or a reference with the URL that it is resolved against: the URL without fragment and user, its origin, scheme, host, path with
-- query, user and password. Nil where it is none.
local url_of = core.url

local MOST_REDIRECTS = 10

-- Answers -------------------------------------------------------------------------------------------------------------

local Answer = { has_headers = true }
-- What it may have besides: where a redirect has led.
local also = { url = true }

-- What an answer has besides what the engine said at once: read when it is asked for, and kept then.
local parts = {
  body = function(self)
    return self.error and "" or read(self, "body")
  end,
  headers = function(self)
    local headers = self.error and {} or read(self, "headers")
    -- Names of header fields have no case.
    return setmetatable(headers, {
      __index = function(_, name)
        return type(name) == "string" and rawget(headers, lower(name)) or nil
      end,
    })
  end,
  timings = function(self)
    return read(self, "timings")
  end,
  sizes = function(self)
    return self.error and { received = 0, body = 0 } or read(self, "sizes")
  end,
}

-- Reads all that an answer has: whoever makes another call keeps it by that.
local function keep(answer)
  for name in next, parts do
    local _ = answer[name]
  end
end

-- Reads all of an answer, so that it stays what it is after the user's next call; gives the answer.
local function keep_answer(self)
  keep(self)
  return self
end

Answer.__index = function(self, key)
  local method = reading[key]
  if method then
    return method
  elseif key == "keep" then
    return keep_answer
  end
  local part = parts[key]
  if part then
    local value = part(self)
    rawset(self, key, value)
    return value
  end
  return core.absent_of_answer(key, parts, also)
end

-- Forms and URLs ------------------------------------------------------------------------------------------------------

-- A value of a field as text. What has no text is an error that names the field: a table's address is no text.
local function field_text(what, name, value)
  local text = core.text_of(value)
  local problem = type(value) == "number" and core.inexact(value)
  if problem then
    return tostring(misused(what .. ": '" .. tostring(name) .. "': " .. problem, value))
  elseif text then
    core.check_digits(what .. ": '" .. tostring(name) .. "'", text)
    return text
  elseif type(value) == "boolean" then
    return tostring(value)
  elseif value == core.null then
    return tostring(misused(what .. ": '" .. tostring(name) .. "' is null: leave it out, or write \"\" for an empty value"))
  end
  local advice = type(value) == "table" and ": give each of its values a name of its own, such as '" .. tostring(name) .. "[key]'" or ""
  return tostring(misused(what .. ": '" .. tostring(name) .. "' is " .. core.shown(value) .. ", and a value is a text or a number" .. advice, value))
end

-- A key of `list` that is none of its first `most` places; nil if it has no such key.
local function key_beside(list, most)
  for key in pairs(list) do
    if type(key) ~= "number" or key > most then
      return key
    end
  end
end

-- The fields of a table as { name, value } in the order in which they are sent: sorted by name, or as written where the
-- table is a list of pairs.
local function ordered(what, fields)
  if type(fields) ~= "table" then
    wrong(what .. " must be a table of names and values, or a list of { name, value }, not " .. core.shown(fields), true)
  end
  local list = {}
  if rawget(fields, 1) == nil then
    for name, value in pairs(fields) do
      if type(name) ~= "string" then
        misused(what .. ": a name is a text, not " .. core.shown(name) .. "; a list has { name, value } at each place", fields)
      end
      list[#list + 1] = { tostring(name), value }
    end
    table.sort(list, function(one, other)
      return one[1] < other[1]
    end)
    return list
  end
  for place, pair in ipairs(fields) do
    local name = type(pair) == "table" and core.text_of(pair[1])
    if not name or pair[2] == nil then
      misused(what .. ": a list has { name, value } at each place, as its order is kept; place " .. place .. " has something else", fields)
    elseif key_beside(pair, 2) then
      misused(what .. ": a list has { name, value } at each place, and nothing else: " .. core.shown(key_beside(pair, 2)) .. " at place " .. place
        .. " would go nowhere" .. (what == "multipart" and "; a file is { name, { filename = …, content = …, type = … } }" or ""), fields)
      list[#list + 1] = { name, pair[2] }
    else
      list[#list + 1] = { name, pair[2] }
    end
  end
  for name in pairs(fields) do
    if type(name) ~= "number" then
      misused(what .. ": give names and values, or a list of { name, value }: '" .. tostring(name) .. "' is in a list", fields)
    end
  end
  return list
end

-- Fields as application/x-www-form-urlencoded. A value that is a list comes several times.
local function form_of(what, fields)
  local pairs_of = {}
  for _, field in ipairs(ordered(what, fields)) do
    local name, value = field[1], field[2]
    local encoded = core.url_encode(name)
    if type(value) == "table" and (rawget(value, 1) ~= nil or next(value) == nil) and value ~= core.made_up() then
      for _, one in ipairs(value) do
        pairs_of[#pairs_of + 1] = encoded .. "=" .. core.url_encode(field_text(what, name, one))
      end
    else
      pairs_of[#pairs_of + 1] = encoded .. "=" .. core.url_encode(field_text(what, name, value))
    end
  end
  return table.concat(pairs_of, "&")
end

-- A URL without user and password, and those, if it has them.
local function without_user(url)
  local whole, _, _, _, _, user, password = url_of(url)
  if not user then
    return url
  end
  return whole, user, password
end

-- Cookies (RFC 6265), a jar for each user ------------------------------------------------------------------------------

local function domain_matches(host, domain)
  return host == domain or (sub(host, -#domain - 1) == "." .. domain and not find(host, "^[%d.]+$"))
end

local function path_matches(path, within)
  return path == within
    or (sub(path, 1, #within) == within and (sub(within, -1) == "/" or sub(path, #within + 1, #within + 1) == "/"))
end

-- What a user keeps at most.
local MOST_COOKIES = 200

-- Puts a cookie that an answer has set into a jar; `now` in nanoseconds.
local function set_cookie(jar, said, host, path, now)
  local cookie = { name = said.name, value = said.value, domain = host, host_only = true, secure = said.secure }
  cookie.path = said.path or match(path, "^(/[^?]*)/") or "/"
  if said.domain then
    if not domain_matches(host, said.domain) then
      return
    end
    cookie.domain, cookie.host_only = said.domain, false
  end
  for place, known in ipairs(jar) do
    if known.name == cookie.name and known.domain == cookie.domain and known.path == cookie.path then
      -- One that is set anew keeps its turn (§5.3).
      cookie.turn = known.turn
      table.remove(jar, place)
      break
    end
  end
  if said.lasts and said.lasts <= 0 then
    return
  end
  cookie.ends = said.lasts and now + said.lasts * 1e9
  jar.turns = (jar.turns or 0) + 1
  cookie.turn = cookie.turn or jar.turns
  jar[#jar + 1] = cookie
  if #jar > MOST_COOKIES then
    table.remove(jar, 1)
  end
end

-- Forgets the cookies whose time is up.
local function forget_old(jar, now)
  for place = #jar, 1, -1 do
    local ends = jar[place].ends
    if ends and ends <= now then
      table.remove(jar, place)
    end
  end
end

-- The cookies that a request carries, in their order.
local function matching(jar, scheme, host, path)
  local plain = match(path, "^[^?]*")
  local found = {}
  for _, cookie in ipairs(jar) do
    local same = cookie.host_only and host == cookie.domain or not cookie.host_only and domain_matches(host, cookie.domain)
    if same and path_matches(plain, cookie.path) and (not cookie.secure or scheme == "https") then
      found[#found + 1] = cookie
    end
  end
  -- Longer paths come first, and of equal ones those that were there first (§5.4).
  table.sort(found, function(one, other)
    if #one.path ~= #other.path then
      return #one.path > #other.path
    end
    return one.turn < other.turn
  end)
  return found
end

-- The Cookie field for a request, or nil.
local function cookies_for(jar, scheme, host, path)
  local found = matching(jar, scheme, host, path)
  if #found == 0 then
    return nil
  end
  for place, cookie in ipairs(found) do
    found[place] = cookie.name .. "=" .. cookie.value
  end
  return table.concat(found, "; ")
end
