
---@class brunt.OwnOptions
---@field unit? string What its values are counted in, for reports.

-- A sum, which the report shows under its name.
---@class brunt.Counter
local Counter = {}

---@param amount? number 0 or above; 1 unless it says otherwise.
---@param tags? table<string, any> What it is counted by besides: `{ page = "a" }` is `NAME{page=a}`.
function Counter:add(amount, tags) end

-- The share of values that are true.
---@class brunt.Rate
local Rate = {}

---@param held any
---@param tags? table<string, any> What it is counted by besides: `{ page = "a" }` is `NAME{page=a}`.
function Rate:add(held, tags) end

-- A distribution of values.
---@class brunt.Trend
local Trend = {}

---@param value number 0 or above.
---@param tags? table<string, any> What it is counted by besides: `{ page = "a" }` is `NAME{page=a}`.
function Trend:add(value, tags) end

-- A value that changes.
---@class brunt.Gauge
local Gauge = {}

---@param value number
---@param tags? table<string, any> What it is counted by besides: `{ page = "a" }` is `NAME{page=a}`.
function Gauge:set(value, tags) end

---@param name string
---@param options? brunt.OwnOptions
---@return brunt.Counter
function brunt.counter(name, options) end

---@param name string
---@param options? brunt.OwnOptions
---@return brunt.Trend
function brunt.trend(name, options) end

---@param name string
---@param options? brunt.OwnOptions
---@return brunt.Gauge
function brunt.gauge(name, options) end

-- Ends this iteration here, as if its function had returned; in a task, the task.
function brunt.exit_here() end

-- Repeats `run` for a length of time; the last call that has begun by then is finished.
---@param length brunt.Duration
---@param run fun(...)
---@param ... any
function brunt.during(length, run, ...) end

-- Calls one of these functions, chosen by weight, and returns its values.
---@param choices { [1]: fun(): any, [2]: number }[]
---@return any ...
function brunt.choose(choices) end

---@class brunt.RetryOptions
---@field times? integer How often at most: 3 unless it says otherwise.
---@field pause? brunt.Duration Between two tries.
---@field when? fun(...): boolean? Whether what was returned is a failure; else an answer that is not ok is one.

-- Calls `run` until it succeeds; an error is a failure, too. Returns the values of the last try, or raises its error.
---@generic T
---@param options brunt.RetryOptions
---@param run fun(...): T
---@param ... any
---@return T
function brunt.retry(options, run, ...) end

-- Waits until this many users are at the meeting of this name. Returns whether they came within the timeout.
---@param name string
---@param users integer
---@param timeout? brunt.Duration A minute unless it says otherwise.
---@return boolean
function brunt.rendezvous(name, users, timeout) end

-- A task, which runs beside a user's own function.
---@class brunt.Task
local Task = {}

-- Waits for its end, and returns the values of its function; nil and "timeout" if that takes longer. Raises its error.
---@param timeout? brunt.Duration
---@return any ...
function Task:wait(timeout) end

-- Ends the task where it stands.
function Task:cancel() end

-- Whether the task has ended.
---@return boolean
function Task:has_ended() end

-- Starts `run` as a task while the user goes on. The task ends with the user's iteration.
---@param run fun(...): any
---@param ... any
---@return brunt.Task
function brunt.spawn(run, ...) end

-- Waits for all tasks of the user; false and "timeout" if that takes longer. Raises the first error among them.
---@param timeout? brunt.Duration
---@return boolean
---@return string?
function brunt.wait(timeout) end

-- Calls `run`, but for no longer than this: returns its values, or nil and "timeout".
---@param run fun(): any
---@param length brunt.Duration
---@return any ...
function brunt.timeout(run, length) end

-- Rows that users take in turn, from one sequence for all users and workers.
---@class brunt.Feeder
local Feeder = {}

-- The next row: a table by the names of the columns, a line, or a value. When a queue is empty, the scenario ends.
---@return any
function Feeder:next() end

-- Data, loaded once and shared.
---@class brunt.Data
local Data = {}

-- All rows in order, beginning anew after the last.
---@return brunt.Feeder
function Data:circular() end

-- A random row each time.
---@return brunt.Feeder
function Data:random() end

-- Each row once in a random order, then all again in the same order.
---@return brunt.Feeder
function Data:shuffled() end

-- Each row once in the whole run; then the scenario that asks for another ends, or the run.
---@param options? { at_end?: "stop_scenario"|"stop_run" }
---@return brunt.Feeder
function Data:queue(options) end

-- Each user has its own row for its whole life. Where there are more users than rows, the run ends or rows are given
-- out again.
---@param options? { at_end?: "stop_run"|"repeat" }
---@return brunt.Feeder
function Data:per_user(options) end

-- The number of rows.
---@return integer
function Data:length() end

---@class brunt.CsvOptions
---@field columns? string[] The names of the columns, where the first line does not have them.
---@field separator? string Between two values: a comma unless it says otherwise.
---@field stream? boolean Rows stay in the file and are read as they are given out; a plan does not carry it.

---@class brunt.FileOptions
---@field stream? boolean Rows stay in the file and are read as they are given out; a plan does not carry it.

-- A file of comma-separated values (RFC 4180), beside the script: each row a table by the names of the columns.
---@param file string
---@param options? brunt.CsvOptions
---@return brunt.Data
function brunt.csv(file, options) end

-- A file with a value in JSON on each line.
---@param file string
---@param options? brunt.FileOptions
---@return brunt.Data
function brunt.jsonl(file, options) end

-- A file of lines: each row a text.
---@param file string
---@param options? brunt.FileOptions
---@return brunt.Data
function brunt.lines(file, options) end

-- Rows that a query finds in an SQLite file, read once while the script is loaded: each a table by the names of the columns, NULL as
-- `brunt.null`, whole numbers beyond 2^53 as texts.
---@param file string
---@param query string
---@return brunt.Data
function brunt.sqlite(file, query) end

---@class brunt.RedisList
---@field address string HOST:PORT, without TLS.
---@field key string The list's name.
---@field user? string
---@field password? string
---@field database? integer 0 unless it says otherwise.

-- Elements of a Redis list, each a text, read once while the script is loaded; the list stays as it is.
---@param list brunt.RedisList
---@return brunt.Data
function brunt.redis_list(list) end

-- Rows from a table.
---@param rows any[]
---@return brunt.Data
function brunt.data(rows) end

-- The content of a file beside the script, byte for byte: for bodies and uploads. At the top of the script.
---@param file string
---@return string
function brunt.file(file) end

-- JSON. Called with the name of a file that has a list in JSON, it gives data: each row one of the list's values.
---@class brunt.Json
---@overload fun(file: string): brunt.Data
local json = {}
brunt.json = json

-- A Lua value as JSON. What has none, such as NaN or a list with holes, is an error.
---@param value any
---@return string
function json.encode(value) end

-- JSON text as a Lua value; nil and the problem if it is not JSON. JSON's null is `brunt.null`.
---@param text string
---@return any value
---@return string? problem
function json.decode(text) end

-- JSON's null.
brunt.null = nil

-- Numbers and texts as bytes, by the formats of Lua 5.3's string.pack, without alignment: b B h H i I l L j J T f d n s z x c
-- with < > = before them, such as ">I4s2".
---@param format string
---@param ... number|string
---@return string
function brunt.pack(format, ...) end

-- The values in bytes, and the place behind them.
---@param format string
---@param bytes string
---@param from? integer Where they begin, from 1.
---@return any ...
function brunt.unpack(format, bytes, from) end

-- A UUID of version 4. All randomness comes from the run's seed; each thread has its own random numbers.
---@return string
function brunt.uuid() end

-- Marks a table as a list: an empty one is `[]` in JSON, and not `{}`.
---@param list? any[]
---@return any[]
function brunt.array(list) end

-- The table of the running user, `vu.store`, whose values stay from one iteration to the next.
---@type table
brunt.user = nil

-- A random whole number from `least` to `most`, both included; without arguments a number from 0 to 1, without 1.
---@param least? integer
---@param most? integer
---@return number
function brunt.random(least, most) end

-- This many random letters of an alphabet: by default the letters and digits of ASCII.
---@param length integer
---@param alphabet? string
---@return string
function brunt.random_string(length, alphabet) end

-- A random element of a list; or a list of this many of them, each at most once.
---@generic T
---@param list T[]
---@param count integer
---@return T[]
---@overload fun(list: T[]): T
function brunt.sample(list, count) end

-- The encoding of a digest: hexadecimal digits by default.
---@alias brunt.Encoding "hex"|"base64"|"base64url"|"binary"
---@alias brunt.DigestAlgorithm "md5"|"sha1"|"sha256"|"sha384"|"sha512"

---@param text string
---@param encoding? brunt.Encoding
---@return string
function brunt.md5(text, encoding) end

---@param text string
---@param encoding? brunt.Encoding
---@return string
function brunt.sha1(text, encoding) end

---@param text string
---@param encoding? brunt.Encoding
---@return string
function brunt.sha256(text, encoding) end

---@param text string
---@param encoding? brunt.Encoding
---@return string
function brunt.sha384(text, encoding) end

---@param text string
---@param encoding? brunt.Encoding
---@return string
function brunt.sha512(text, encoding) end

-- The HMAC of a text (RFC 2104).
---@param algorithm brunt.DigestAlgorithm
---@param key string
---@param text string
---@param encoding? brunt.Encoding
---@return string
function brunt.hmac(algorithm, key, text, encoding) end

-- Base64, with padding.
---@param text string
---@return string
function brunt.base64(text) end

-- Base64 for URLs, without padding.
---@param text string
---@return string
function brunt.base64url(text) end

-- The bytes of a base64 text, in either alphabet, with padding or without. Raises an error if it is not base64.
---@param text string
---@return string
function brunt.base64_decode(text) end

-- Hexadecimal digits, in lower case.
---@param text string
---@return string
function brunt.hex(text) end

-- The bytes of hexadecimal digits. Raises an error for any other character, or an odd number of digits.
---@param text string
---@return string
function brunt.hex_decode(text) end

-- A text for a URL: all but letters, digits and - . _ ~ as %XX.
---@param text string
---@return string
function brunt.url_encode(text) end

-- The bytes of a percent-encoded text; + stays +. Raises an error if two digits do not follow a %.
---@param text string
---@return string
function brunt.url_decode(text) end

-- JSON Web Tokens (RFC 7519).
---@class brunt.Jwt
local jwt = {}
brunt.jwt = jwt

---@class brunt.JwtOptions
---@field algorithm? "HS256"|"HS384"|"HS512"|"RS256"|"RS384"|"RS512"|"PS256"|"PS384"|"PS512"|"ES256"|"ES384"|"EdDSA" HS256 unless it says otherwise.
---@field header? table<string, any> More fields of the header, such as `kid`.

-- A token with these claims.
---@param claims table<string, any>
---@param key string The secret of HS…; a private key in PEM for the others.
---@param options? brunt.JwtOptions
---@return string
function jwt.sign(claims, key, options) end

-- The claims and the header of a token. Its signature is not checked. Raises an error if the text is not a token.
---@param token string
---@return table<string, any> claims
---@return table<string, any> header
function jwt.claims(token) end

-- The time of day: seconds since 1970 in UTC, with fractions.
---@return number
function brunt.now() end

-- A date in UTC, by the format of C's strftime, with %3f, %6f and %9f for fractions of a second: "%Y-%m-%dT%H:%M:%SZ"
-- by default.
---@param format? string
---@param time? number Seconds since 1970; now unless it says otherwise.
---@return string
function brunt.date(format, time) end
