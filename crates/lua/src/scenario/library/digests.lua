-- Digests, message authentication codes, and signed tokens.

local host, brunt, core, shared = ...

local shown, check_options = core.shown, core.check_options
local misused, text_of = core.misused, core.text_of

-- Whether an encoding is a name, or nil.
local function is_encoding(encoding)
  return encoding == nil or type(encoding) == "string"
end

local ENCODINGS = " takes an encoding such as \"base64\", not "

for _, algorithm in ipairs({ "md5", "sha1", "sha256", "sha384", "sha512" }) do
  brunt[algorithm] = function(value, encoding)
    local text = text_of(value)
    if not text then
      return misused("brunt." .. algorithm .. " takes a text, not " .. shown(value), value)
    elseif not is_encoding(encoding) then
      return misused("brunt." .. algorithm .. ENCODINGS .. shown(encoding), encoding)
    end
    local problem, digest = host.digest(algorithm, text, encoding)
    if problem then
      return misused("brunt." .. algorithm .. ": " .. problem)
    end
    return digest
  end
end

function brunt.hmac(algorithm, key, value, encoding)
  local secret, text = text_of(key), text_of(value)
  if type(algorithm) ~= "string" or not secret or not text then
    local given = shown(algorithm) .. ", " .. (secret and "a key" or shown(key)) .. " and " .. (text and "a text" or shown(value))
    return misused("brunt.hmac takes an algorithm, a key and a text, not " .. given, algorithm, key, value)
  elseif not is_encoding(encoding) then
    return misused("brunt.hmac" .. ENCODINGS .. shown(encoding), encoding)
  end
  local problem, code = host.hmac(algorithm, secret, text, encoding)
  if problem then
    return misused("brunt.hmac: " .. problem)
  end
  return code
end

-- The digest of a text, for protocols: in hexadecimal digits unless `encoding` says otherwise.
function core.digest(algorithm, text, encoding)
  local _, digest = host.digest(algorithm, text, encoding)
  return digest
end

-- The HMAC of a text, in the same encodings.
function core.hmac(algorithm, key, text, encoding)
  local _, code = host.hmac(algorithm, key, text, encoding)
  return code
end

-- JSON Web Tokens.
local jwt = {}
brunt.jwt = jwt

local jwt_options = { algorithm = true, header = true }

function jwt.sign(claims, key, options)
  check_options("brunt.jwt.sign", options, jwt_options)
  options = options or {}
  local algorithm, secret = options.algorithm, text_of(key)
  if algorithm == nil then
    algorithm = "HS256"
  end
  if type(claims) ~= "table" or not secret or type(algorithm) ~= "string" then
    local problem = "brunt.jwt.sign takes claims, a key and { algorithm = \"HS256\" }, not "
    local given = (type(claims) == "table" and "claims" or shown(claims)) .. ", " .. (secret and "a key" or shown(key))
    return misused(problem .. given .. " and " .. shown(algorithm), claims, key, algorithm)
  end
  local header = { typ = "JWT" }
  if options.header ~= nil and type(options.header) ~= "table" then
    return misused("brunt.jwt.sign: header must be a table, not " .. shown(options.header), options.header)
  end
  for name, value in pairs(options.header or {}) do
    header[name] = value
  end
  header.alg = algorithm
  local made_up = shared.is_rehearsing() and shared.made_up(claims, header)
  local head, problem = "{}", nil
  local body = "{}"
  if not made_up then
    head, problem = host.json_encode(header)
    if head then
      body, problem = host.json_encode(claims)
    end
    -- An empty table is an object; a list is not.
    if not problem and body:sub(1, 1) ~= "{" then
      problem = "claims are a table by their names, not a list"
    end
    if problem then
      return misused("brunt.jwt.sign: " .. problem)
    end
  end
  local token
  problem, token = host.token_sign(algorithm, secret, head, body)
  if problem then
    return misused("brunt.jwt.sign: " .. problem)
  end
  return made_up or token
end

function jwt.claims(token)
  local text = text_of(token)
  if not text then
    return misused("brunt.jwt.claims takes a token, not " .. shown(token), token)
  end
  local problem, claims, header = host.token_read(text)
  if problem then
    return misused("brunt.jwt.claims: " .. problem)
  end
  return host.json_decode(claims), host.json_decode(header)
end
