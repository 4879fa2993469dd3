-- A part of `brunt.http`, in one chunk with the files before it (`scenario.rs`).

-- What a call is made of, as `core.call` takes it.
local function prepare(self, method, url, options, jar)
  local body, content_type, headers
  url = based(self, url)
  check_options("a request", options, call_options)
  local user, password
  if find(url, "@", 1, true) then
    url, user, password = without_user(url)
  end
  if options.query then
    local query = form_of("query", options.query)
    -- A fragment stays with who asks, and a query would be part of it behind the #.
    url = match(url, "^[^#]*")
    if query ~= "" then
      url = url .. (find(url, "?", 1, true) and "&" or "?") .. query
    end
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
  local jar, _, _, scheme, host, path = jar_of(self), url_of(whole(self, based(self, url or "/")))
  if not jar then
    wrong(what .. ": this client keeps no cookies (cookies = false)")
  elseif not scheme then
    wrong(what .. ": give a whole URL, as the client has no base")
  end
  forget_old(jar, core.user(what).now)
  return jar, scheme, host, path
end

-- The client's methods are called by a colon. A dot would give them the path for the client.
local function check_client(self, word)
  if getmetatable(self) ~= Client then
    wrong("http." .. word .. "(…) is called with a dot: write http:" .. word .. "(…), with a colon", true)
  end
end

-- The value of the user's cookie that a request to this URL would carry; nil if there is none.
function Client:cookie(name, url)
  check_client(self, "cookie")
  if url ~= nil and type(url) ~= "string" then
    wrong("cookie takes a name, and the URL or path of the request that would carry it, not a " .. type(url), true)
  end
  for _, cookie in ipairs(matching(jar_at(self, "cookie", url))) do
    if cookie.name == name then
      return cookie.value
    end
  end
end

-- Gives the user a cookie, as if an answer from `options.url` had set it.
function Client:set_cookie(name, value, options)
  check_client(self, "set_cookie")
  check_options("set_cookie", options, { url = true, domain = true, path = true, secure = true })
  options = options or empty
  local said = { name = tostring(name), value = field_text("set_cookie", name, value), secure = options.secure }
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
  check_client(self, "clear_cookies")
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
      prepared = core.prepare(self.client, method, known.url, nil, nil, nil, nil, nil, nil, nil, most_redirects(self) > 0) or false
      known.prepared = prepared
    end
    if prepared then
      local answer = setmetatable(call_prepared(prepared, known.name, options), Answer)
      if answer.flags == 0 and not redirecting[answer.status] then
        return answer
      end
      keep_cookies(jar, answer, whole(self, known.url))
      return follow(self, answer, method, known.url, options and options.name or known.name, options or empty, nil, nil, nil, jar)
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
    check_client(self, method)
    return request(self, upper, url, options)
  end
end

-- A request with whatever method.
function Client:request(method, url, options)
  check_client(self, "request")
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

local batch

-- Several requests at once, by names: gives the answers by the same names.
local function batch_by_names(self, requests, see)
  local names, list = {}, {}
  for name in pairs(requests) do
    if type(name) ~= "string" then
      wrong("batch takes a list of requests, or requests by names: " .. core.shown(name) .. " is no name", true)
    end
    names[#names + 1] = name
  end
  table.sort(names)
  for place, name in ipairs(names) do
    list[place] = requests[name]
  end
  local by_name = {}
  for place, answer in ipairs(batch(self, list, see)) do
    by_name[names[place]] = answer
  end
  return by_name
end

-- Several requests at once. `see` is shown each answer before another call is made, which a redirect is.
local function batch_in_order(self, requests, see)
  if type(requests) ~= "table" then
    wrong("batch takes a table of paths, or of { method, path, options }, not a " .. type(requests))
  end
  local jar, made = jar_of(self), {}
  for key in pairs(requests) do
    if type(key) ~= "number" then
      return batch_by_names(self, requests, see)
    end
  end
  for place, one in ipairs(requests) do
    local method, url, options
    if type(one) == "string" then
      method, url = "GET", one
    elseif type(one) == "table" and #one == 1 then
      method, url, options = "GET", one[1], one[2]
    elseif type(one) == "table" then
      method, url, options = one[1], one[2], one[3]
      if one[4] ~= nil then
        wrong("a request of batch is { method, path, options }: a body is { body = … } in its options, and a fourth value has no meaning", true)
      end
    else
      wrong("batch takes paths, or { method, path, options }, not a " .. type(one))
    end
    if type(url) ~= "string" then
      wrong("batch takes paths, or { method, path, options }, such as { \"POST\", \"/a\", { json = value } }: its request " .. place .. " has no path", true)
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
      options = { name = one.counted, tags = options.tags, ok = CHALLENGED, timeout = options.timeout }
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

batch = batch_in_order

-- Several requests at once, over as many connections as the client may have: paths to GET, or { method, path, options };
-- a list, or by names.
function Client:batch(requests)
  check_client(self, "batch")
  return batch(self, requests)
end
