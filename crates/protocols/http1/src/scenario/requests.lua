-- A part of `brunt.http`, in one chunk with the files before it (`scenario.rs`).

-- Requests ------------------------------------------------------------------------------------------------------------

local call_options = {
  name = true, tags = true, ok = true, timeout = true, headers = true, query = true, body = true, json = true, form = true,
  multipart = true, basic = true, bearer = true, digest = true, aws = true, oauth = true, redirects = true, discard = true,
}

local boundaries = 0

-- A text within quotation marks of a part's head.
local function quoted(text)
  return '"' .. gsub(gsub(gsub(tostring(text), '"', "%%22"), "\r", "%%0D"), "\n", "%%0A") .. '"'
end

-- The Content-Type among header fields, or nil.
local function content_type_in(headers)
  for name, value in pairs(type(headers) == "table" and headers or {}) do
    if type(name) == "string" and lower(name) == "content-type" and type(value) == "string" then
      return value
    end
  end
end

-- A body of parts (RFC 7578), and its media type. A part is a value, or { filename, content, type, headers }; a list of those is several
-- parts of one name. The boundary is that of the request's Content-Type, if it has one.
local function multipart_of(fields, headers)
  local given = content_type_in(headers)
  local boundary = given and (match(given, ';%s*[Bb][Oo][Uu][Nn][Dd][Aa][Rr][Yy]="([^"]+)"') or match(given, ";%s*[Bb][Oo][Uu][Nn][Dd][Aa][Rr][Yy]=([^;%s]+)"))
  if given and not boundary then
    wrong("multipart: the Content-Type '" .. given .. "' has no boundary, so nobody could read the parts: add ; boundary=…, or leave the header out", true)
  end
  if not boundary then
    boundaries = boundaries + 1
    boundary = string.format("brunt-%d-%08x", boundaries, math.random(0, 2 ^ 31 - 1))
  end
  local texts = {}
  local function add(name, value)
    local head = "--" .. boundary .. "\r\nContent-Disposition: form-data; name=" .. quoted(name)
    if type(value) == "table" and value ~= core.made_up() then
      check_options("the part '" .. name .. "' of multipart", value, { filename = true, content = true, type = true, headers = true })
      local has_file = value.filename ~= false
      if has_file then
        head = head .. "; filename=" .. quoted(value.filename or "file")
      end
      local media_type = value.type or has_file and "application/octet-stream"
      if media_type then
        head = head .. "\r\nContent-Type: " .. gsub(tostring(media_type), "[\r\n]", "")
      end
      for _, field in ipairs(value.headers and ordered("the headers of a part", value.headers) or {}) do
        head = head .. "\r\n" .. gsub(field[1], "[%c:]", "") .. ": " .. gsub(field_text("the headers of a part", field[1], field[2]), "[\r\n]", "")
      end
      value = value.content == nil and "" or value.content
    end
    texts[#texts + 1] = head .. "\r\n\r\n" .. field_text("multipart", name, value) .. "\r\n"
  end
  for _, field in ipairs(ordered("multipart", fields)) do
    local name, value = field[1], field[2]
    local is_list = type(value) == "table" and rawget(value, 1) ~= nil
    local key = is_list and key_beside(value, #value)
    if key then
      misused("multipart: '" .. name .. "' is a list of values, in which " .. core.shown(key)
        .. " would go nowhere: a file is { filename = …, content = …, type = … }", fields)
    end
    for _, one in ipairs(is_list and value or { value }) do
      add(name, one)
    end
  end
  texts[#texts + 1] = "--" .. boundary .. "--\r\n"
  return table.concat(texts), "multipart/form-data; boundary=" .. boundary
end

-- A body that is given piece by piece, as a list; each piece is a chunk.
local function pieces_of(next_piece)
  local pieces = {}
  for piece in next_piece do
    if type(piece) ~= "string" then
      wrong("a piece of the body must be a string, not " .. type(piece))
    elseif piece ~= "" then
      pieces[#pieces + 1] = piece
    end
  end
  return pieces
end

local function body_of(options)
  local given = 0
  for _, kind in ipairs({ "body", "json", "form", "multipart" }) do
    given = given + (options[kind] ~= nil and 1 or 0)
  end
  if given > 1 then
    wrong("a request has one body: give one of body, json, form and multipart")
  end
  if type(options.body) == "function" then
    return pieces_of(options.body), nil
  elseif options.body ~= nil then
    core.check_digits("the body", options.body)
    return options.body, nil
  elseif options.json ~= nil then
    return require("brunt").json.encode(options.json), "application/json"
  elseif options.form ~= nil then
    -- A form has + for a blank (the WHATWG's URL standard, §5.2), where a query has %20.
    return gsub(form_of("form", options.form), "%%20", "+"), "application/x-www-form-urlencoded"
  elseif options.multipart ~= nil then
    return multipart_of(options.multipart, options.headers)
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
  for name, value in pairs(type(given) == "table" and given or {}) do
    core.check_digits("the header " .. tostring(name), value)
  end
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
  local _, origin, scheme, _, path = url_of(url)
  return method .. " " .. (origin and sub(origin, #scheme + 4) or "") .. gsub(path or url, "%?.*$", "")
end

-- A path behind that of the base: `base = "http://host/api"` and "/users" make "/api/users".
local function based(self, url)
  if self.prefix and type(url) == "string" and byte(url) == 47 then
    return self.prefix .. url
  end
  return url
end

-- A URL as the client's own connections take it: by its path, where its origin is the base's.
local function own_of(self, origin, path, url)
  return origin == self.origin and path or url
end

-- A number in a URL of which Lua has shown fewer digits than it has.
local SHORTENED = "%d%.?%d*e%+%d+"

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
    local number = match(url, SHORTENED)
    if number then
      core.refuse_shortened("the URL", number)
    end
    known = {
      name = name_of(method, url), url = based(self, url),
      has_user = find(url, "@", 1, true) ~= nil and without_user(url) ~= url,
    }
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

local Client = core.object()
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
      if value == false then
        return headers
      end
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
    local _, _, _, host, path = url_of(url)
    local cookies = read(answer, "cookies")
    local now = core.user("a call").now
    for _, said in ipairs(cookies) do
      set_cookie(jar, said, host, path, now)
    end
  end
end

local function cookie_field(jar, url)
  if jar and #jar > 0 then
    forget_old(jar, core.user("a call").now)
    local _, _, scheme, host, path = url_of(url)
    if scheme then
      return cookies_for(jar, scheme, host, path)
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
    -- Signatures cover the body and not its chunks.
    body = type(body) == "table" and table.concat(body) or body,
    content_type = content_type,
    send = function(options, method, url, headers, body, content_type)
      local _, origin = url_of(url)
      local elsewhere = origin ~= self.origin
      local sent = call(self.client, options.name, options, method, url, headers, nil, body, content_type, nil, elsewhere)
      return setmetatable(sent, Answer)
    end,
  }
end

-- The statuses that are a success of a call that is made to be challenged.
local CHALLENGED = "2xx,3xx,401"

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
    -- To be challenged is what this call is for.
    so_named = { name = (options.name or name) .. " challenge", tags = options.tags, timeout = options.timeout, ok = CHALLENGED }
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
  elseif answer.status == 401 and is_first and not options.ok then
    answer:fail("answered by 401 without a challenge that brunt can meet")
    rawset(answer, "ok", false)
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

-- Header fields that speak of a body, and those that one origin alone may see: a redirect without a body, or to another origin, leaves them
-- out (the WHATWG's Fetch standard, HTTP-redirect fetch).
local of_body = { ["content-type"] = true, ["content-encoding"] = true, ["content-language"] = true, ["content-location"] = true }
local of_origin = { authorization = true, cookie = true }

local function without(headers, names)
  local kept = {}
  for name, value in pairs(headers or empty) do
    kept[name] = not names[lower(name)] and value or nil
  end
  return kept
end

-- Follows redirects. They all are one call of that name, and count beside it by names of their own.
local function follow(self, answer, method, url, name, options, headers, body, content_type, jar)
  local most = most_redirects(self, options)
  local origin
  url, origin = url_of(whole(self, url))
  local hops, elsewhere = 0, false
  local signer = redirecting[answer.status] and signer_of(self, options) or nil
  while redirecting[answer.status] and hops < most do
    local location = answer.headers.location
    if not location then
      break
    end
    hops = hops + 1
    local target, target_origin, _, _, path = url_of(location, url)
    if not target then
      raise("the answer (status " .. answer.status .. ") leads to no URL: " .. location)
    end
    if answer.status == 303 and method ~= "HEAD" or (answer.status < 303 and method == "POST") then
      method, body, content_type = "GET", nil, nil
      headers = without(headers, of_body)
    end
    if origin ~= target_origin then
      -- What authorizes at one place is not for another; of the fields that all calls have, `core.call` leaves it out.
      elsewhere, signer = true, nil
      headers = without(headers, of_origin)
    end
    url, origin = target, target_origin
    local again = { name = name, tags = options.tags, ok = options.ok, timeout = options.timeout, discard = options.discard, continues = answer }
    local cookies = cookie_field(jar, url)
    local own = own_of(self, origin, path, url)
    answer = send(self, signer, name, again, method, own, headers, cookies, body, content_type, elsewhere, hops < most)
    keep_cookies(jar, answer, url)
  end
  rawset(answer, "url", url)
  if hops > 0 and hops >= most and redirecting[answer.status] and answer.ok and answer.headers.location then
    answer:fail("more than " .. most .. " redirects in a row")
    rawset(answer, "ok", false)
  end
  return answer
end
