-- A part of `brunt.http`, in one chunk with the files before it (`scenario.rs`).

-- Streams -------------------------------------------------------------------------------------------------------------

-- A message of an answer that comes as messages.
local Event = {}
local event_fields = { event = true, data = true, id = true, body = true, status = true, error = true, ok = true }
Event.__index = function(self, key)
  -- What looks in bodies looks in its data.
  if key == "body" then
    return self.data
  elseif key == "status" then
    return 0
  end
  return reading[key] or core.absent("a message", key, {}, reading, event_fields)
end

local Stream = core.object()
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
  -- A page in place of events, such as that of a login, is no stream.
  if stream.is_events and answer.ok and not answer.error and not core.is_rehearsing() then
    local kind = answer.headers["content-type"]
    if kind and not find(lower(kind), "text/event-stream", 1, true) then
      answer:fail("the answer is no stream of events: its Content-Type is " .. kind)
      rawset(answer, "ok", false)
    end
  end
end

-- The next message, or nil at the end: what `for message in stream do` asks for.
function Stream:next()
  if rawget(self, "answer") then
    return nil
  end
  local message, answer = core.next_message(self.stream)
  if message then
    return setmetatable(message, Event)
  elseif answer then
    ended(self, answer)
  end
end

Stream.__call = Stream.next

-- Leaves a stream before its end: its connection is closed, and what came counts.
function Stream:close()
  if not rawget(self, "answer") then
    ended(self, core.leave(self.stream))
  end
  return self
end

core.with_colon("stream", Stream)

local framings = { sse = true, lines = true, chunks = true }
local stream_options = { method = true, messages = true }
for _, name in ipairs({ "name", "tags", "timeout", "headers", "query", "body", "json", "form", "multipart", "basic", "bearer", "aws" }) do
  stream_options[name] = true
end

-- A request whose answer comes as messages: server-sent events or, with `messages`, lines or chunks. Gives a stream, which
-- is called for its next message, and has what its answer has once it is over.
function Client:events(url, options)
  check_client(self, "events")
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
  return setmetatable({ stream = stream, label = stream.label, jar = jar, url = whole(self, full), is_events = framing == "sse" }, Stream)
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
    local whole_url, _, scheme = url_of(source, url)
    if source ~= "" and (scheme == "http" or scheme == "https") then
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
  check_client(self, "page")
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
  for _, place in ipairs(resources_of(answer, rawget(answer, "url") or whole(self, based(self, url)))) do
    local known = cache[place]
    if not known or known.until_ns <= now then
      local _, origin, _, _, path = url_of(place)
      -- A path would get the base's own before it once more.
      local own = self.prefix and place or own_of(self, origin, path, place)
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
local engine_options = { last_message = true, stall_timeout = true, base = true, headers = true, http = true, connections = true, pool = true, pipeline = true, timeout = true,
  keep_alive = true, cert = true, key = true }

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
    passed.is_of_base = true
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
  local base, prefix = core.base(client)
  local _, origin = url_of(base or "")
  return setmetatable({
    client = client,
    base = base or false,
    -- The base's own path, before that of each request.
    prefix = prefix or false,
    origin = origin or false,
    redirects = redirects == nil and MOST_REDIRECTS or redirects,
    cookies = cookies == nil or cookies,
    known = {},
    signer = signer or false,
    headers = signer and passed.headers or empty,
  }, Client)
end
