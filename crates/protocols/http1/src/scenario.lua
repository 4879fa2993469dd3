-- `brunt.http`: sessions over HTTP. The engine sends requests and reads answers; what browsers do with them is here.

local core = ...

local call, call_prepared, read = core.call, core.call_prepared, core.read
local wrong, raise, check_options, reading = core.wrong, core.raise, core.check_options, core.reading
local byte, find, match, gsub, lower, sub = string.byte, string.find, string.match, string.gsub, string.lower, string.sub

local MOST_REDIRECTS = 10

-- Answers -------------------------------------------------------------------------------------------------------------

local Answer = {}

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

Answer.__index = function(self, key)
  local method = reading[key]
  if method then
    return method
  end
  local part = parts[key]
  if part then
    local value = part(self)
    rawset(self, key, value)
    return value
  end
end

-- URLs ----------------------------------------------------------------------------------------------------------------

local function escape(text)
  return core.url_encode(core.text_of(text) or tostring(text))
end

-- A table as application/x-www-form-urlencoded, in the order of its names. A value that is a list comes several times.
local function form_of(what, fields)
  if type(fields) ~= "table" then
    wrong(what .. " must be a table of names and values, not a " .. type(fields))
  end
  local names, pairs_of = {}, {}
  for name in pairs(fields) do
    names[#names + 1] = name
  end
  table.sort(names, function(one, other)
    return tostring(one) < tostring(other)
  end)
  for _, name in ipairs(names) do
    local value = fields[name]
    for _, one in ipairs(type(value) == "table" and value or { value }) do
      pairs_of[#pairs_of + 1] = escape(name) .. "=" .. escape(one)
    end
  end
  return table.concat(pairs_of, "&")
end

-- scheme, authority, path (with query) of a whole URL.
local function split(url)
  local scheme, authority, path = match(url, "^(%w+)://([^/?#]*)([^#]*)")
  if scheme then
    authority = gsub(authority, "^.*@", "")
    path = path == "" and "/" or (sub(path, 1, 1) == "?" and "/" .. path or path)
  end
  return scheme and lower(scheme), authority and lower(authority), path
end

-- A URL without user and password, and those, if it has them.
local function without_user(url)
  local scheme, userinfo, rest = match(url, "^(%w+://)([^/?#]*)@([^@/?#]*.*)$")
  if not scheme then
    return url
  end
  local decoded = gsub(userinfo, "%%(%x%x)", function(digits)
    return string.char(tonumber(digits, 16))
  end)
  local user, password = match(decoded, "^([^:]*):?(.*)$")
  return scheme .. rest, user, password
end

-- A path without the parts `.` and `..` (RFC 3986 §5.2.4); empty parts stay.
local function without_dots(path)
  local query = match(path, "%?.*$") or ""
  local kept, last = {}, ""
  for part in (sub(match(path, "^[^?]*"), 2) .. "/"):gmatch("([^/]*)/") do
    last = part
    if part == ".." then
      kept[#kept] = nil
    elseif part ~= "." then
      kept[#kept + 1] = part
    end
  end
  local trailing = (last == "." or last == "..") and #kept > 0 and "/" or ""
  return "/" .. table.concat(kept, "/") .. trailing .. query
end

-- A reference resolved against a whole URL (RFC 3986 §5.2, for what has an authority).
local function resolve(base, reference)
  reference = gsub(reference, "#.*$", "")
  -- What has no place in a URL, but is written by servers.
  reference = gsub(reference, "[^!-~]", function(letter)
    return string.format("%%%02X", byte(letter))
  end)
  if match(reference, "^%w[%w+.-]*://") then
    return reference
  end
  local scheme, authority, path = split(base)
  local origin = scheme .. "://" .. authority
  if sub(reference, 1, 2) == "//" then
    return scheme .. ":" .. reference
  elseif sub(reference, 1, 1) == "/" then
    return origin .. without_dots(reference)
  elseif reference == "" then
    return origin .. path
  elseif sub(reference, 1, 1) == "?" then
    return origin .. match(path, "^[^?]*") .. reference
  end
  return origin .. without_dots(match(path, "^[^?]*/") .. reference)
end

-- Cookies (RFC 6265), a jar for each user ------------------------------------------------------------------------------

local function host_of(authority)
  return match(authority, "^(%b[])") or match(authority, "^[^:]*")
end

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

-- Requests ------------------------------------------------------------------------------------------------------------

local call_options = {
  name = true, tags = true, ok = true, timeout = true, headers = true, query = true, body = true, json = true, form = true,
  multipart = true, basic = true, bearer = true, digest = true, aws = true, oauth = true, redirects = true, discard = true,
}

local boundaries = 0

-- A body of parts (RFC 7578), and its media type. A part is a value, or { filename, content, type }; a list of those is several parts of one name.
local function multipart_of(fields)
  if type(fields) ~= "table" then
    wrong("multipart must be a table of names and values, not a " .. type(fields))
  end
  boundaries = boundaries + 1
  local boundary = string.format("brunt-%d-%08x", boundaries, math.random(0, 2 ^ 31 - 1))
  local names, texts = {}, {}
  for name in pairs(fields) do
    names[#names + 1] = name
  end
  table.sort(names, function(one, other)
    return tostring(one) < tostring(other)
  end)
  local function add(name, value)
    local quoted = gsub(gsub(tostring(name), '"', "%%22"), "[\r\n]", "")
    local head = '--' .. boundary .. '\r\nContent-Disposition: form-data; name="' .. quoted .. '"'
    if type(value) == "table" then
      check_options("a part of multipart", value, { filename = true, content = true, type = true })
      local filename = gsub(gsub(tostring(value.filename or "file"), '"', "%%22"), "[\r\n]", "")
      head = head .. '; filename="' .. filename .. '"\r\nContent-Type: '
        .. gsub(tostring(value.type or "application/octet-stream"), "[\r\n]", "")
      value = value.content or ""
    end
    texts[#texts + 1] = head .. "\r\n\r\n" .. (core.text_of(value) or tostring(value)) .. "\r\n"
  end
  for _, name in ipairs(names) do
    local value = fields[name]
    for _, one in ipairs(type(value) == "table" and value[1] ~= nil and value or { value }) do
      add(name, one)
    end
  end
  texts[#texts + 1] = "--" .. boundary .. "--\r\n"
  return table.concat(texts), "multipart/form-data; boundary=" .. boundary
end

local function body_of(options)
  local given = 0
  for _, kind in ipairs({ "body", "json", "form", "multipart" }) do
    given = given + (options[kind] ~= nil and 1 or 0)
  end
  if given > 1 then
    wrong("a request has one body: give one of body, json, form and multipart")
  end
  if options.body ~= nil then
    return options.body, nil
  elseif options.json ~= nil then
    local text, problem = require("brunt").json.encode(options.json)
    if not text then
      raise("json: " .. problem)
    end
    return text, "application/json"
  elseif options.form ~= nil then
    return form_of("form", options.form), "application/x-www-form-urlencoded"
  elseif options.multipart ~= nil then
    return multipart_of(options.multipart)
  end
end

-- Whether header fields have one of this name, which is in lower case.
local function has_field(headers, wanted)
  for name in pairs(type(headers) == "table" and headers or {}) do
    if type(name) == "string" and lower(name) == wanted then
      return true
    end
  end
  return false
end

-- Header fields, and Authorization besides if something authorizes.
local function headers_of(given, authorized)
  if not authorized or (given ~= nil and type(given) ~= "table") then
    return given
  end
  local headers = { Authorization = authorized }
  for name, value in pairs(given or {}) do
    if type(name) ~= "string" or lower(name) ~= "authorization" then
      headers[name] = value
    end
  end
  return headers
end

-- Names that calls have by themselves: the method and the path without its query.
local function name_of(method, url)
  if byte(url) == 47 then -- /
    local query = find(url, "[?#]")
    return method .. " " .. (query and sub(url, 1, query - 1) or url)
  end
  local _, authority, path = split(url)
  return method .. " " .. (authority or "") .. gsub(path or url, "%?.*$", "")
end

-- What is known of a request by its method and URL: `name`, what it is counted as by itself, and `prepared`, by which it is
-- made as often as it is the same. Of URLs that scripts make up without end the first are remembered.
local requests_known = 0
local MOST_KNOWN = 2000

local function known_request(self, method, url)
  local of_method = self.known[method]
  local known = of_method and of_method[url]
  if not known then
    if type(url) ~= "string" then
      wrong("a request takes a path such as \"/\" or a whole URL, not a " .. type(url))
    end
    known = { name = name_of(method, url), has_user = find(url, "@", 1, true) ~= nil and without_user(url) ~= url }
    if requests_known < MOST_KNOWN then
      requests_known = requests_known + 1
      if not of_method then
        of_method = {}
        self.known[method] = of_method
      end
      of_method[url] = known
    end
  end
  return known
end

local empty = {}

local Client = {}
Client.__index = Client

local function whole(self, url)
  if byte(url) == 47 then
    return (self.base or "") .. url
  end
  return url
end

-- The jar of this user, if cookies are kept.
local function jar_of(self)
  if not self.cookies then
    return nil
  elseif self.cookies ~= "iteration" then
    return core.kept("a call", "cookies")
  end
  local jar, iteration = core.kept("a call", "cookies of an iteration"), core.home("a call").vu.iteration
  if jar.iteration ~= iteration then
    for place = #jar, 1, -1 do
      jar[place] = nil
    end
    jar.iteration = iteration
  end
  return jar
end

-- Header fields without a Cookie field of the script's, which joins those of the jar: a request has one (RFC 6265 §5.4).
local function joined(headers, cookies)
  for name, value in pairs(cookies and headers or empty) do
    if type(name) == "string" and lower(name) == "cookie" then
      local kept = {}
      for other, text in pairs(headers) do
        kept[other] = other ~= name and text or nil
      end
      return kept, tostring(value) .. "; " .. cookies
    end
  end
  return headers, cookies
end

local function keep_cookies(jar, answer, url)
  if jar and answer.flags % 2 == 1 then
    local _, authority, path = split(url)
    local cookies = read(answer, "cookies")
    local now = core.user("a call").now
    for _, said in ipairs(cookies) do
      set_cookie(jar, said, host_of(authority), path, now)
    end
  end
end

local function cookie_field(jar, url)
  if jar and #jar > 0 then
    forget_old(jar, core.user("a call").now)
    local scheme, authority, path = split(url)
    if scheme then
      return cookies_for(jar, scheme, host_of(authority), path)
    end
  end
end

-- Options that say what authorizes a call.
local authorizing = { basic = true, bearer = true, digest = true, aws = true, oauth = true }
local redirecting = { [301] = true, [302] = true, [303] = true, [307] = true, [308] = true }

-- What makes the Authorization of each request with these options, or nil.
local function signer_of(self, options)
  for name in next, options do
    if authorizing[name] then
      local _, signer = authorization("", options)
      return signer
    end
  end
  local signer = self.signer
  if signer and has_field(options.headers, "authorization") then
    return nil
  end
  return signer
end

-- A request as `authorization.lua` takes it. `send` makes a call of the same client, beside those that its user counts on.
local function signable(self, method, url, headers, body, content_type)
  return {
    method = method,
    url = url,
    headers = headers,
    common = self.headers,
    body = body,
    content_type = content_type,
    send = function(options, method, url, headers, body, content_type)
      local elsewhere = match(url, "^%w+://[^/?#]*") ~= self.origin
      local sent = call(self.client, options.name, options, method, url, headers, nil, body, content_type, nil, elsewhere)
      return setmetatable(sent, Answer)
    end,
  }
end

-- Makes a request, and once more where it was challenged to authorize itself. What is sent to be challenged is a call of its own.
local function send(self, signer, name, options, method, url, headers, cookies, body, content_type, elsewhere, follows)
  headers, cookies = joined(headers, cookies)
  if not signer then
    local sent = call(
      self.client, name, options, method, url, headers, cookies, body, content_type, options.discard, elsewhere, nil, follows
    )
    return setmetatable(sent, Answer)
  end
  local request = signable(self, method, whole(self, url), headers, body, content_type)
  local signed, is_first = signer:authorize(request)
  local so_named = options
  if is_first then
    so_named = { name = (options.name or name) .. " challenge", tags = options.tags, timeout = options.timeout }
  end
  local answer = setmetatable(
    call(
      self.client, name, so_named, method, url, signed, cookies, body, content_type, not is_first and options.discard, nil, nil,
      follows
    ),
    Answer
  )
  if answer.status == 401 and signer:is_challenged(request, answer) then
    local jar = jar_of(self)
    keep_cookies(jar, answer, request.url)
    cookies = cookie_field(jar, request.url)
    answer = setmetatable(
      call(
        self.client, name, options, method, url, signer:authorize(request), cookies, body, content_type, options.discard, nil, nil,
        follows
      ),
      Answer
    )
  end
  return answer
end

-- How many redirects are followed in a row.
local function most_redirects(self, options)
  local most = options and options.redirects
  if most == nil then
    most = self.redirects
  end
  return most == true and MOST_REDIRECTS or most or 0
end

-- Follows redirects. They all are one call of that name, and count beside it by names of their own.
local function follow(self, answer, method, url, name, options, headers, body, content_type, jar)
  local most = most_redirects(self, options)
  url = whole(self, url)
  local hops, elsewhere = 0, false
  local signer = redirecting[answer.status] and signer_of(self, options) or nil
  while redirecting[answer.status] and hops < most do
    local location = answer.headers.location
    if not location then
      break
    end
    hops = hops + 1
    local target = resolve(url, location)
    if answer.status == 303 and method ~= "HEAD" or (answer.status < 303 and method == "POST") then
      method, body, content_type = "GET", nil, nil
    end
    if match(url, "^%w+://[^/?#]*") ~= match(target, "^%w+://[^/?#]*") then
      -- What authorizes at one place is not for another; of the fields that all calls have, `core.call` leaves it out.
      elsewhere, signer = true, nil
      local kept = {}
      for key, value in pairs(headers or {}) do
        local name = lower(key)
        if name ~= "authorization" and name ~= "cookie" then
          kept[key] = value
        end
      end
      headers = kept
    end
    url = target
    local again = { name = name, tags = options.tags, ok = options.ok, timeout = options.timeout, discard = options.discard, continues = answer }
    local cookies = cookie_field(jar, url)
    local own = split(url) and match(url, "^%w+://[^/?#]*") == self.origin and gsub(url, "^%w+://[^/?#]*", "") or url
    answer = send(self, signer, name, again, method, own, headers, cookies, body, content_type, elsewhere, hops < most)
    keep_cookies(jar, answer, url)
  end
  rawset(answer, "url", url)
  return answer
end

-- What a call is made of, as `core.call` takes it.
local function prepare(self, method, url, options, jar)
  local body, content_type, headers
  check_options("a request", options, call_options)
  local user, password
  url, user, password = without_user(url)
  if options.query then
    local query = form_of("query", options.query)
    url = url .. (find(url, "?", 1, true) and "&" or "?") .. query
  end
  body, content_type = body_of(options)
  local authorized = authorization("", options)
  if user and not authorized and not has_field(options.headers, "authorization") and not signer_of(self, options) then
    authorized = authorization("", { basic = { user, password } })
  end
  headers = headers_of(options.headers, authorized)
  return url, headers, cookie_field(jar, whole(self, url)), body, content_type
end

-- The jar of the user that runs, with scheme, host and path of a URL, or of the client's base.
local function jar_at(self, what, url)
  local jar, scheme, authority, path = jar_of(self), split(whole(self, url or "/"))
  if not jar then
    wrong(what .. ": this client keeps no cookies (cookies = false)")
  elseif not scheme then
    wrong(what .. ": give a whole URL, as the client has no base")
  end
  forget_old(jar, core.user(what).now)
  return jar, scheme, host_of(authority), path
end

-- The value of the user's cookie that a request to this URL would carry; nil if there is none.
function Client:cookie(name, url)
  for _, cookie in ipairs(matching(jar_at(self, "cookie", url))) do
    if cookie.name == name then
      return cookie.value
    end
  end
end

-- Gives the user a cookie, as if an answer from `options.url` had set it.
function Client:set_cookie(name, value, options)
  check_options("set_cookie", options, { url = true, domain = true, path = true, secure = true })
  options = options or empty
  local said = { name = tostring(name), value = core.text_of(value) or tostring(value), secure = options.secure }
  said.path, said.domain = options.path or "/", options.domain and lower(options.domain)
  if find(said.name, "[%c;=, ]") or find(said.value, "[%c;]") then
    raise("set_cookie: a name has no =, ; or space, and a value no ;: " .. said.name .. "=" .. said.value)
  end
  local jar, _, host, path = jar_at(self, "set_cookie", options.url)
  if said.domain and not domain_matches(host, said.domain) then
    raise("set_cookie: " .. host .. " cannot set a cookie of " .. said.domain)
  end
  set_cookie(jar, said, host, path, core.user("set_cookie").now)
end

-- Forgets the user's cookies: those of this name, or all.
function Client:clear_cookies(name)
  local jar = jar_of(self) or empty
  for place = #jar, 1, -1 do
    if name == nil or jar[place].name == name then
      table.remove(jar, place)
    end
  end
end

-- Options that change nothing of the request itself.
local about_counting = { name = true, tags = true, ok = true, timeout = true }

-- Whether a request with these options is the same each time: what is most frequent, and has the shortest way.
local function is_plain(options)
  if options == nil then
    return true
  elseif type(options) ~= "table" then
    return false
  end
  for name in next, options do
    if not about_counting[name] then
      return false
    end
  end
  return true
end

local function request(self, method, url, options)
  local jar = self.cookies and jar_of(self)
  local known = known_request(self, method, url)
  if not (jar and jar[1]) and not self.signer and not known.has_user and is_plain(options) then
    local prepared = known.prepared
    if prepared == nil then
      prepared = core.prepare(self.client, method, url, nil, nil, nil, nil, nil, nil, nil, most_redirects(self) > 0) or false
      known.prepared = prepared
    end
    if prepared then
      local answer = setmetatable(call_prepared(prepared, known.name, options), Answer)
      if answer.flags == 0 and not redirecting[answer.status] then
        return answer
      end
      keep_cookies(jar, answer, whole(self, url))
      return follow(self, answer, method, url, options and options.name or known.name, options or empty, nil, nil, nil, jar)
    end
  end
  options = options or empty
  local full, headers, cookies, body, content_type = prepare(self, method, url, options, jar)
  local signer = signer_of(self, options)
  local follows = most_redirects(self, options) > 0
  local answer = send(self, signer, known.name, options, method, full, headers, cookies, body, content_type, nil, follows)
  if answer.flags == 0 and not redirecting[answer.status] then
    return answer
  end
  keep_cookies(jar, answer, whole(self, full))
  return follow(self, answer, method, full, options.name or known.name, options, headers, body, content_type, jar)
end

for _, method in ipairs({ "get", "head", "post", "put", "patch", "delete", "options" }) do
  local upper = method:upper()
  Client[method] = function(self, url, options)
    return request(self, upper, url, options)
  end
end

-- A request with whatever method.
function Client:request(method, url, options)
  if type(method) ~= "string" then
    wrong("request takes a method such as \"GET\" and a path, not a " .. type(method))
  end
  return request(self, method, url, options)
end

-- Takes what is wanted of a batch's answer while it is kept: until the next call, which a redirect is.
local function take(self, answer, url, jar, see)
  setmetatable(answer, Answer)
  keep_cookies(jar, answer, whole(self, url))
  if see then
    see(answer)
  end
  if redirecting[answer.status] then
    local _ = answer.headers
  end
  return answer
end

-- Makes those requests of a batch once more, at once, that were challenged to authorize themselves.
local function send_challenged(self, made, answers, jar, see)
  local challenged = {}
  for place, answer in ipairs(answers) do
    local one = made[place]
    if answer.status == 401 and one.signer and one.signer:is_challenged(one.request, answer) then
      challenged[#challenged + 1] = place
    end
  end
  if #challenged == 0 then
    return
  end
  -- The other answers would be gone with the next call.
  for _, answer in ipairs(answers) do
    keep(answer)
  end
  for _, place in ipairs(challenged) do
    -- A token may be fetched for it, before any is begun.
    made[place].signed = made[place].signer:authorize(made[place].request)
  end
  for _, place in ipairs(challenged) do
    local method, full, name, options, _, body, content_type = unpack(made[place], 1, 7)
    local cookies = cookie_field(jar, whole(self, full))
    core.start(
      self.client, name, options, method, full, made[place].signed, cookies, body, content_type, options.discard, nil, nil,
      most_redirects(self, options) > 0
    )
  end
  for at, answer in ipairs(core.wait()) do
    local place = challenged[at]
    answers[place] = take(self, answer, made[place][2], jar, see)
  end
end

-- Several requests at once. `see` is shown each answer before another call is made, which a redirect is.
local function batch(self, requests, see)
  if type(requests) ~= "table" then
    wrong("batch takes a table of paths, or of { method, path, options }, not a " .. type(requests))
  end
  local jar, made = jar_of(self), {}
  for place, one in ipairs(requests) do
    local method, url, options
    if type(one) == "string" then
      method, url = "GET", one
    elseif type(one) == "table" and #one == 1 then
      method, url, options = "GET", one[1], one[2]
    elseif type(one) == "table" then
      method, url, options = one[1], one[2], one[3]
    else
      wrong("batch takes paths, or { method, path, options }, not a " .. type(one))
    end
    options = options or empty
    local known = known_request(self, method, url)
    local full, headers, cookies, body, content_type = prepare(self, method, url, options, jar)
    local name = options.name or known.name
    local signer, signed, counted = signer_of(self, options), headers, name
    local request = signer and signable(self, method, whole(self, full), headers, body, content_type)
    if signer then
      local is_first
      signed, is_first = signer:authorize(request)
      counted = is_first and name .. " challenge" or name
    end
    made[place] = {
      method, full, name, options, headers, body, content_type, cookies, signed,
      signer = signer, request = request, counted = counted,
    }
  end
  -- None is begun before all are known to be right.
  for _, one in ipairs(made) do
    local method, full, name, options, _, body, content_type, cookies, headers = unpack(one, 1, 9)
    headers, cookies = joined(headers, cookies)
    local follows = most_redirects(self, options) > 0
    if one.counted ~= name then
      options = { name = one.counted, tags = options.tags, ok = options.ok, timeout = options.timeout }
    end
    core.start(
      self.client, name, options, method, full, headers, cookies, body, content_type, options.discard, nil, nil, follows
    )
  end
  local answers = core.wait()
  for place, answer in ipairs(answers) do
    take(self, answer, made[place][2], jar, see)
  end
  send_challenged(self, made, answers, jar, see)
  local is_redirected = false
  for _, answer in ipairs(answers) do
    is_redirected = is_redirected or redirecting[answer.status]
  end
  if not is_redirected then
    return answers
  end
  for _, answer in ipairs(answers) do
    keep(answer)
  end
  for place, answer in ipairs(answers) do
    local method, full, name, options, headers, body, content_type = unpack(made[place], 1, 7)
    if redirecting[answer.status] then
      answer = follow(self, answer, method, full, name, options, headers, body, content_type, jar)
      answers[place] = answer
      keep(answer)
    end
  end
  return answers
end

-- Several requests at once, over as many connections as the client may have: paths to GET, or { method, path, options }.
function Client:batch(requests)
  return batch(self, requests)
end

-- Streams -------------------------------------------------------------------------------------------------------------

-- A message of an answer that comes as messages.
local Event = {}
Event.__index = function(self, key)
  -- What looks in bodies looks in its data.
  if key == "body" then
    return self.data
  elseif key == "status" then
    return 0
  end
  return reading[key]
end

local Stream = {}
Stream.__index = function(self, key)
  local method = Stream[key]
  if method then
    return method
  end
  local answer = rawget(self, "answer")
  if answer then
    return answer[key]
  end
end

local function ended(stream, answer)
  stream.answer = setmetatable(answer, Answer)
  stream[1] = answer[1]
  keep_cookies(stream.jar, answer, stream.url)
end

-- The next message, or nil at the end: what `for message in stream do` asks for.
function Stream:next()
  if rawget(self, "answer") then
    return nil
  end
  local message, answer = core.next_message(self.stream)
  if message then
    return setmetatable(message, Event)
  end
  ended(self, answer)
end

Stream.__call = Stream.next

-- Leaves a stream before its end: its connection is closed, and what came counts.
function Stream:close()
  if not rawget(self, "answer") then
    ended(self, core.leave(self.stream))
  end
  return self
end

local framings = { sse = true, lines = true, chunks = true }
local stream_options = { method = true, messages = true }
for _, name in ipairs({ "name", "tags", "timeout", "headers", "query", "body", "json", "form", "multipart", "basic", "bearer", "aws" }) do
  stream_options[name] = true
end

-- A request whose answer comes as messages: server-sent events or, with `messages`, lines or chunks. Gives a stream, which
-- is called for its next message, and has what its answer has once it is over.
function Client:events(url, options)
  check_options("events", options, stream_options)
  local passed = {}
  for name, value in pairs(options or empty) do
    passed[name] = value
  end
  local framing = passed.messages == nil and "sse" or passed.messages
  if not framings[framing] then
    wrong('events: messages must be "sse", "lines" or "chunks", not ' .. core.shown(framing), true)
  end
  local has_body = passed.body ~= nil or passed.json ~= nil or passed.form ~= nil or passed.multipart ~= nil
  local method = passed.method or (has_body and "POST" or "GET")
  passed.method, passed.messages = nil, nil
  if framing == "sse" and (passed.headers == nil or type(passed.headers) == "table") then
    local headers = { Accept = "text/event-stream" }
    for name, value in pairs(passed.headers or empty) do
      if type(name) == "string" and lower(name) == "accept" then
        headers.Accept = nil
      end
      headers[name] = value
    end
    passed.headers = headers
  end
  local jar = jar_of(self)
  local known = known_request(self, method, url)
  local full, headers, cookies, body, content_type = prepare(self, method, url, passed, jar)
  headers, cookies = joined(headers, cookies)
  local signer = signer_of(self, passed)
  if signer then
    local whole_url = whole(self, full)
    local is_first
    headers, is_first = signer:authorize(signable(self, method, whole_url, headers, body, content_type))
    if is_first then
      wrong("events: Digest asks twice, and a stream is asked for once: make another request with it first")
    end
  end
  local stream = core.stream(
    self.client, known.name, passed, method, full, headers, cookies, body, content_type, false, false, framing
  )
  return setmetatable({ stream = stream, label = stream.label, jar = jar, url = whole(self, full) }, Stream)
end

-- Pages ---------------------------------------------------------------------------------------------------------------

-- What a page names that browsers fetch with it, and the attributes that say where it is.
local RESOURCES = 'img[src], script[src], input[type="image"][src], video[poster], '
  .. 'link[rel~="stylesheet"][href], link[rel~="icon"][href]'
local SOURCES = { img = "src", script = "src", input = "src", video = "poster", link = "href" }
-- The most of a page that are fetched, and that a user's cache knows.
local MOST_RESOURCES, MOST_CACHED = 500, 1000

-- What a user's cache keeps of an answer: until when it is fresh (RFC 9111 §4.2.1, without Expires and guesses), and by what
-- it can be asked for again (§4.3.1). Nil for what is not kept.
local function cached(answer, now)
  local control = lower(answer.headers["cache-control"] or "")
  if find(control, "no-store", 1, true) then
    return nil
  end
  local age = not find(control, "no-cache", 1, true) and tonumber(match(control, "max%-age=(%d+)")) or 0
  local etag, modified = answer.headers.etag, answer.headers["last-modified"]
  if age > 0 or etag or modified then
    return { until_ns = now + age * 1e9, etag = etag, modified = modified }
  end
end

-- The places of a page's resources as whole URLs, each once.
local function resources_of(answer, url)
  local urls, known = {}, {}
  for _, element in ipairs(core.look_for("css", answer, RESOURCES, true) or {}) do
    local source = element.attributes[SOURCES[element.name]] or ""
    source = match(source, "^%s*(.-)%s*$")
    local scheme = match(source, "^(%a[%w+.-]*):")
    if source ~= "" and (not scheme or lower(scheme) == "http" or lower(scheme) == "https") then
      local whole_url = resolve(url, source)
      if not known[whole_url] and #urls < MOST_RESOURCES then
        known[whole_url] = true
        urls[#urls + 1] = whole_url
      end
    end
  end
  return urls
end

local page_options = { resources = true }
for name in pairs(call_options) do
  page_options[name] = true
end

-- A page and what it names, as browsers fetch them: the page first, then images, scripts and styles at once, over as many
-- connections as the client may have. What the user's cache has is not fetched, or only asked for again. Gives the page's
-- answer, with the others in `resources`.
function Client:page(url, options)
  check_options("page", options, page_options)
  local passed = {}
  for name, value in pairs(options or empty) do
    passed[name] = value
  end
  local named = passed.resources
  passed.resources = nil
  if named ~= nil and type(named) ~= "string" then
    wrong("page: resources is the name that all of them are counted by, not a " .. type(named), true)
  end
  local answer = request(self, "GET", url, passed)
  local cache = core.kept("a call", "cache")
  rawset(answer, "resources", {})
  if answer.error then
    return answer
  end
  local missing, places, now = {}, {}, core.user("a call").now
  for _, place in ipairs(resources_of(answer, rawget(answer, "url") or whole(self, url))) do
    local known = cache[place]
    if not known or known.until_ns <= now then
      local origin = match(place, "^%w+://[^/?#]*")
      local own = origin == self.origin and sub(place, #origin + 1) or place
      local headers = known and { ["If-None-Match"] = known.etag, ["If-Modified-Since"] = known.modified } or nil
      missing[#missing + 1] = { "GET", own, { name = named, headers = headers } }
      places[#places + 1] = place
    end
  end
  if #missing > 0 then
    keep(answer)
    answer.resources = batch(self, missing, function(one)
      local _ = one.headers
    end)
  end
  now = core.user("a call").now
  for at, place in ipairs(places) do
    local one = answer.resources[at]
    -- Where a redirect led, what it led to stands in no cache.
    local direct = not one.error and (one.status == 200 or one.status == 304) and one.url == nil
    local kept = direct and cached(one, now) or nil
    local known, count = cache[place], cache.count or 0
    if kept and known and one.status == 304 then
      kept.etag, kept.modified = kept.etag or known.etag, kept.modified or known.modified
    end
    if known then
      cache[place], cache.count = kept, kept and count or count - 1
    elseif kept and count < MOST_CACHED then
      cache[place], cache.count = kept, count + 1
    end
  end
  return answer
end

-- The header fields, with what browsers accept.
local function accepting(given)
  local headers = { ["Accept-Encoding"] = "gzip, deflate, br, zstd" }
  for name, value in pairs(type(given) == "table" and given or empty) do
    if type(name) == "string" and lower(name) == "accept-encoding" then
      return given
    end
    headers[name] = value
  end
  return headers
end

local own_options = {
  redirects = true, cookies = true, basic = true, bearer = true, digest = true, aws = true, oauth = true, compressed = true,
}
local engine_options = { last_message = true, stall_timeout = true, base = true, headers = true, http = true, connections = true, pool = true, pipeline = true, timeout = true }

return function(options)
  local known, passed = {}, {}
  for _, set in ipairs({ own_options, engine_options }) do
    for name in pairs(set) do
      known[name] = true
    end
  end
  if type(options) == "string" then
    options = { base = options }
  end
  check_options("brunt.http", options, known)
  options = options or {}
  for name in pairs(engine_options) do
    passed[name] = options[name]
  end
  local authorized, signer = authorization("brunt.http: ", options)
  local user, password = core.base_user(options.base)
  if user and not authorized and not signer and not has_field(options.headers, "authorization") then
    authorized = authorization("brunt.http: ", { basic = { user, password } })
  end
  passed.headers = headers_of(options.headers, authorized)
  if options.compressed then
    passed.headers = accepting(passed.headers)
  end
  local redirects = options.redirects
  if redirects ~= nil and type(redirects) ~= "boolean" and (type(redirects) ~= "number" or redirects < 0) then
    wrong("brunt.http: redirects must be how many are followed, or false for none")
  end
  local cookies = options.cookies
  if cookies ~= nil and type(cookies) ~= "boolean" and cookies ~= "iteration" then
    wrong("brunt.http: cookies must be false for none, or \"iteration\" for those that are forgotten after each iteration")
  end
  local client = core.client("http", passed)
  local base = core.base(client)
  return setmetatable({
    client = client,
    base = base,
    origin = base,
    redirects = redirects == nil and MOST_REDIRECTS or redirects,
    cookies = cookies == nil or cookies,
    known = {},
    signer = signer,
    headers = signer and passed.headers or empty,
  }, Client)
end
