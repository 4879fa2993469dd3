-- What authorizes requests: Basic (RFC 7617) and Bearer (RFC 6750), which are the same each time; Digest (RFC 7616), Signature
-- V4 of AWS and OAuth 2.0 client credentials (RFC 6749 §4.4), which depend on the request, or on a call before it.

local core = ...

local digest, hmac, url_encode, text_of, misused = core.digest, core.hmac, core.url_encode, core.text_of, core.misused
local raise, shown, check_options = core.raise, core.shown, core.check_options
local find, format, gsub, lower, match, sub = string.find, string.format, string.gsub, string.lower, string.match, string.sub
local concat, sort, char = table.concat, table.sort, string.char

-- The value of an option that must be a text; `whose` such as "aws".
local function text(whose, options, name)
  local value = options[name]
  return text_of(value) or tostring(misused(whose .. ": " .. name .. " must be a text, not " .. shown(value), value))
end

-- User and password, as `{ user, password }`.
local function credentials(whose, kind, given)
  local user, password = type(given) == "table" and given[1], type(given) == "table" and given[2]
  if type(given) == "table" and #given == 2 and text_of(user) and text_of(password) then
    return text_of(user), text_of(password)
  end
  misused(whose .. kind .. " must be { user, password }", given)
  return "anything", "anything"
end

-- The path with its query of a whole URL, and its origin.
local function target_of(url)
  local origin, path = match(url, "^(%w+://[^/?#]*)([^#]*)")
  if not origin then
    return url, ""
  end
  return sub(path, 1, 1) == "/" and path or "/" .. path, origin
end

-- Header fields with others besides, which take the place of those of the same name.
local function with(headers, more)
  local all = {}
  for name, value in pairs(headers or {}) do
    all[name] = value
  end
  for name, value in pairs(more) do
    for known in pairs(headers or {}) do
      if type(known) == "string" and lower(known) == lower(name) then
        all[known] = nil
      end
    end
    all[name] = value
  end
  return all
end

-- Digest --------------------------------------------------------------------------------------------------------------

local Digest = {}
Digest.__index = Digest

local algorithms = { ["md5"] = "md5", ["sha-256"] = "sha256" }

-- The challenges of a WWW-Authenticate field: their schemes and parameters, names in lower case (RFC 9110 §11.6.1).
local function challenges(field)
  local all, at = {}, 1
  while at <= #field do
    local _, last, name = find(field, "^[%s,]*([%w!#$%%&'*+.^_`|~-]+)%s*", at)
    if not last then
      break
    end
    local challenge = all[#all]
    local _, equals = find(field, "^=%s*", last + 1)
    if equals and challenge then
      local _, quoted, value = find(field, '^"([^"\\]*)"', equals + 1)
      if not quoted then
        -- A quoted text with escapes is rare; one that never ends is none.
        _, quoted, value = find(field, '^"(.-[^\\])"', equals + 1)
        value = value and gsub(value, "\\(.)", "%1")
      end
      if not quoted then
        _, quoted, value = find(field, "^([^%s,\"]*)", equals + 1)
      end
      challenge[lower(name)] = value
      last = quoted
    elseif not equals then
      all[#all + 1] = { scheme = lower(name) }
    end
    at = math.max(last, equals or 0) + 1
  end
  return all
end

-- The first challenge that can be met, or nil.
local function acceptable(field)
  for _, challenge in ipairs(challenges(field)) do
    local algorithm = lower(challenge.algorithm or "md5")
    local of_session = match(algorithm, "^(.*)%-sess$")
    challenge.digest, challenge.of_session = algorithms[of_session or algorithm], of_session ~= nil
    local qop = challenge.qop
    challenge.with_qop = qop and find("," .. gsub(lower(qop), "%s", "") .. ",", ",auth,", 1, true) ~= nil
    if challenge.scheme == "digest" and challenge.digest and challenge.nonce and (qop == nil or challenge.with_qop) then
      challenge.realm, challenge.count = challenge.realm or "", 0
      return challenge
    end
  end
end

-- The challenges that a user has met, by where.
local function met(self, origin)
  return core.kept("a call", "digests"), origin .. "\0" .. self.user
end

local function quoted(value)
  return '"' .. gsub(value, '[\\"]', "\\%0") .. '"'
end

-- The header fields of a request, and whether it is sent to be challenged.
Digest.authorize = function(self, request)
  local uri, origin = target_of(request.url)
  local all, place = met(self, origin)
  local challenge = all[place]
  if not challenge then
    return request.headers, true
  end
  local function hash(...)
    return digest(challenge.digest, concat({ ... }, ":"))
  end
  challenge.count, request.nonce = challenge.count + 1, challenge.nonce
  local count, nonce = format("%08x", challenge.count), challenge.nonce
  challenge.cnonce = challenge.cnonce or require("brunt").random_string(32)
  local cnonce = challenge.cnonce
  local secret = hash(self.user, challenge.realm, self.password)
  if challenge.of_session then
    secret = hash(secret, nonce, cnonce)
  end
  local asked = hash(request.method, uri)
  local hides_user = lower(challenge.userhash or "") == "true"
  local user = hides_user and hash(self.user, challenge.realm) or self.user
  local response = challenge.with_qop and hash(secret, nonce, count, cnonce, "auth", asked) or hash(secret, nonce, asked)
  local field = "Digest username=" .. quoted(user) .. ", realm=" .. quoted(challenge.realm) .. ", nonce=" .. quoted(nonce)
    .. ", uri=" .. quoted(uri) .. ", response=" .. quoted(response)
  if challenge.algorithm then
    field = field .. ", algorithm=" .. challenge.algorithm
  end
  if challenge.opaque then
    field = field .. ", opaque=" .. quoted(challenge.opaque)
  end
  if challenge.with_qop then
    field = field .. ", qop=auth, nc=" .. count .. ", cnonce=" .. quoted(cnonce)
  elseif challenge.of_session then
    field = field .. ", cnonce=" .. quoted(cnonce)
  end
  if hides_user then
    field = field .. ", userhash=true"
  end
  return with(request.headers, { Authorization = field }), false
end

-- Whether an answer with status 401 asks for what can be given, so that the request is worth sending again.
Digest.is_challenged = function(self, request, answer)
  local _, origin = target_of(request.url)
  local all, place = met(self, origin)
  local known, challenge = all[place], acceptable(answer.headers["www-authenticate"] or "")
  -- The nonce that it was sent with, again, means that user or password are wrong.
  if not challenge or challenge.nonce == request.nonce then
    return false
  elseif not known or known.nonce ~= challenge.nonce then
    all[place] = challenge
  end
  return true
end

-- AWS Signature V4 (https://docs.aws.amazon.com/IAM/latest/UserGuide/create-signed-request.html) ---------------------------

local Aws = {}
Aws.__index = Aws

local function decoded(part)
  return (gsub(part, "%%(%x%x)", function(digits)
    return char(tonumber(digits, 16))
  end))
end

-- The query in an order of its own, each name and value escaped in one way.
local function canonical_query(query)
  local fields = {}
  for field in string.gmatch(query, "[^&]+") do
    local name, value = match(field, "^([^=]*)=?(.*)$")
    fields[#fields + 1] = { url_encode(decoded(name)), url_encode(decoded(value)) }
  end
  sort(fields, function(one, other)
    if one[1] ~= other[1] then
      return one[1] < other[1]
    end
    return one[2] < other[2]
  end)
  for place, field in ipairs(fields) do
    fields[place] = field[1] .. "=" .. field[2]
  end
  return concat(fields, "&")
end

-- The path without dots and empty parts, escaped once more; S3 takes it as it is.
local function canonical_path(path, service)
  if service == "s3" then
    return path
  end
  local kept = {}
  for part in string.gmatch(path, "[^/]+") do
    if part == ".." then
      kept[#kept] = nil
    elseif part ~= "." then
      kept[#kept + 1] = url_encode(part)
    end
  end
  local trailing = #kept > 0 and sub(path, -1) == "/" and "/" or ""
  return "/" .. concat(kept, "/") .. trailing
end

Aws.authorize = function(self, request)
  local uri, origin = target_of(request.url)
  local body = request.body or ""
  local added, signed = {}, { host = match(origin, "://(.*)$") or "" }
  if request.content_type then
    signed["content-type"] = request.content_type
  end
  for _, headers in ipairs({ request.common, request.headers or {} }) do
    for name, value in pairs(headers) do
      signed[lower(tostring(name))] = tostring(value)
    end
  end
  signed.authorization = nil
  -- A date that the script gives is the request's own.
  local time = signed["x-amz-date"]
  if not time then
    time = require("brunt").date("%Y%m%dT%H%M%SZ")
    added["X-Amz-Date"] = time
  end
  if self.session_token then
    added["X-Amz-Security-Token"] = self.session_token
  end
  local body_digest = digest("sha256", body)
  if self.service == "s3" then
    added["X-Amz-Content-Sha256"] = body_digest
  end
  for name, value in pairs(added) do
    signed[lower(name)] = value
  end
  local names, lines = {}, {}
  for name in pairs(signed) do
    names[#names + 1] = name
  end
  sort(names)
  for place, name in ipairs(names) do
    local value = gsub(gsub(gsub(signed[name], "^%s+", ""), "%s+$", ""), "%s+", " ")
    lines[place] = name .. ":" .. value .. "\n"
  end
  local path, query = match(uri, "^([^?]*)%??(.*)$")
  local of_names = concat(names, ";")
  local canonical = concat({
    request.method, canonical_path(path, self.service), canonical_query(query), concat(lines), of_names, body_digest,
  }, "\n")
  local day = sub(time, 1, 8)
  local scope = concat({ day, self.region, self.service, "aws4_request" }, "/")
  local key = "AWS4" .. self.secret
  for _, part in ipairs({ day, self.region, self.service, "aws4_request" }) do
    key = hmac("sha256", key, part, "binary")
  end
  local to_sign = concat({ "AWS4-HMAC-SHA256", time, scope, digest("sha256", canonical) }, "\n")
  added.Authorization = "AWS4-HMAC-SHA256 Credential=" .. self.key .. "/" .. scope .. ", SignedHeaders=" .. of_names
    .. ", Signature=" .. hmac("sha256", key, to_sign)
  return with(request.headers, added), false
end

Aws.is_challenged = function()
  return false
end

-- OAuth 2.0 client credentials -----------------------------------------------------------------------------------------

local Oauth = {}
Oauth.__index = Oauth

-- A token is renewed so long before it expires, or after nine tenths of its life if that is later; in seconds.
local BEFORE_EXPIRY = 30
-- A request for a token that has not come back in this time is given up by those who wait for it; nanoseconds.
local PATIENCE = 30e9
-- How long a user waits before it looks again whether another has the token: from, to, in seconds.
local FIRST_LOOK, LONGEST_LOOK = 0.005, 0.1

Oauth.fetch = function(self, request)
  local brunt = require("brunt")
  local form = "grant_type=client_credentials" .. (self.scope and "&scope=" .. url_encode(self.scope) or "")
  local headers = { Authorization = "Basic " .. core.base64(url_encode(self.id) .. ":" .. url_encode(self.secret)) }
  local options = { name = "oauth token" }
  local answer = request.send(options, "POST", self.token_url, headers, form, "application/x-www-form-urlencoded")
  if answer.error then
    raise("oauth: no token, since the call to the token's server failed: " .. tostring(answer.reason))
  end
  local said, problem = brunt.json.decode(answer.body)
  if type(said) ~= "table" then
    raise("oauth: the token's server answered " .. answer.status .. " with what is not JSON: " .. tostring(problem))
  elseif not answer.ok or said.access_token == nil then
    -- Of what else it says, something may be secret.
    local reason = type(said.error) == "string" and sub(said.error, 1, 100) or "no access_token"
    raise("oauth: the token's server answered " .. answer.status .. ": " .. reason)
  end
  local life = tonumber(said.expires_in)
  local now = core.user("a call").now
  self.token = tostring(said.access_token)
  -- Without a life it is good until it is refused.
  self.renewed_at = life and now + math.max(life - BEFORE_EXPIRY, life * 0.9) * 1e9 or math.huge
  self.ends_at = life and now + life * 1e9 or math.huge
end

-- The token is one for all users of a thread: the first that needs one fetches it, and those that come meanwhile wait.
Oauth.authorize = function(self, request)
  local look = FIRST_LOOK
  while true do
    local now = core.user("a call").now
    if self.token and now < self.renewed_at then
      break
    elseif not self.fetching_since or now - self.fetching_since > PATIENCE then
      self.fetching_since = now
      local done, problem = pcall(self.fetch, self, request)
      self.fetching_since = nil
      if not done then
        error(problem, 0)
      end
      break
    elseif self.token and now < self.ends_at then
      -- Somebody renews it, and it still holds.
      break
    end
    require("brunt").pause(look)
    look = math.min(look * 2, LONGEST_LOOK)
  end
  request.sent_token = self.token
  return with(request.headers, { Authorization = "Bearer " .. self.token }), false
end

-- A token that is refused before its time is fetched anew, once.
Oauth.is_challenged = function(self, request)
  if request.is_retry or self.token == nil then
    return false
  end
  if request.sent_token == self.token then
    self.token = nil
  end
  request.is_retry = true
  return true
end

-- ---------------------------------------------------------------------------------------------------------------------

local kinds = {}

kinds.basic = function(whose, given)
  local user, password = credentials(whose, "basic", given)
  return "Basic " .. core.base64(user .. ":" .. password)
end

kinds.bearer = function(whose, given)
  return "Bearer " .. (text_of(given) or tostring(misused(whose .. "bearer must be a text, not " .. shown(given), given)))
end

kinds.digest = function(whose, given)
  local user, password = credentials(whose, "digest", given)
  return nil, setmetatable({ user = user, password = password }, Digest)
end

kinds.aws = function(whose, given)
  local known = { key = true, secret = true, session_token = true, region = true, service = true }
  check_options(whose .. "aws", given, known)
  local signer = {}
  for name in pairs(known) do
    signer[name] = (name ~= "session_token" or given[name] ~= nil) and text(whose .. "aws", given, name) or nil
  end
  return nil, setmetatable(signer, Aws)
end

-- Those who ask for the same token share it. Of clients that scripts make up without end the first are remembered.
local tokens, tokens_known, MOST_TOKENS = {}, 0, 1000

kinds.oauth = function(whose, given)
  check_options(whose .. "oauth", given, { token_url = true, client = true, secret = true, scope = true })
  local token_url = text(whose .. "oauth", given, "token_url")
  if not find(token_url, "^https?://") and token_url ~= "anything" then
    misused(whose .. "oauth: token_url must begin with http:// or https://, not " .. shown(token_url))
  end
  local id, secret = text(whose .. "oauth", given, "client"), text(whose .. "oauth", given, "secret")
  local scope = given.scope ~= nil and text(whose .. "oauth", given, "scope") or nil
  local same = concat({ token_url, id, secret, scope }, "\0")
  local signer = tokens[same]
  if not signer then
    signer = setmetatable({ token_url = token_url, id = id, secret = secret, scope = scope }, Oauth)
    if tokens_known < MOST_TOKENS then
      tokens_known = tokens_known + 1
      tokens[same] = signer
    end
  end
  return nil, signer
end

local names = { "basic", "bearer", "digest", "aws", "oauth" }

-- What options say about authorization: the value of the Authorization field, or what makes it of each request; neither if
-- they say nothing.
return function(whose, options)
  local field, signer, given
  for _, name in ipairs(names) do
    local value = options[name]
    if value ~= nil and value ~= false then
      if given then
        misused(whose .. given .. " and " .. name .. " both authorize: give one of them")
      end
      given = name
      field, signer = kinds[name](whose, value)
    end
  end
  return field, signer
end
