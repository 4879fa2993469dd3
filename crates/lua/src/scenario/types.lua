---@meta brunt
-- What brunt's scenarios are written with, for editors that speak LuaLS (https://luals.github.io): they complete, check and
-- show it. Written by `brunt types`; nothing of it is run.

---@class brunt
local brunt = {}

-- A length of time: seconds as a number, or a text with its unit such as "500ms", "30s", "5m".
---@alias brunt.Duration number|string

-- One virtual user. Its table is the user's own: `store` is for whatever the script wants to keep from one iteration to the
-- next.
---@class brunt.User
---@field id integer Unique over the whole run, from 1.
---@field iteration integer Which iteration of this user it is, from 1.
---@field scenario string The name of its scenario.
---@field store table The user's own; empty at first.

-- A scenario: what a user does in one iteration.
---@class brunt.Scenario
---@field name string
local Scenario = {}

-- When users come: steps, one after the other, made by `brunt.rate`, `brunt.users` and their like. Steps of rates are open:
-- users come at times of their own, each for one iteration. Steps of users are closed: so many are there, each beginning anew
-- when it has ended.
---@class brunt.Injection
---@field [integer] brunt.Step
---@field arrivals? "uniform"|"poisson" How the arrivals of rates are spread; uniform unless it says otherwise.
---@field most_alive? integer The most users alive at once: who comes when there is no place is counted as not admitted.
---@field after? brunt.Scenario Begins when the users of this scenario, injected before, have ended.

-- Says when users come to the scenario. Once for each scenario, or for a mix.
---@param injection brunt.Injection
---@return brunt.Scenario
function Scenario:inject(injection) end

-- A step of an injection.
---@class brunt.Step

-- A scenario: a name, and what a user does in one iteration. The second value is what `brunt.setup` returned.
---@param name string
---@param run fun(vu: brunt.User, given: any)
---@return brunt.Scenario
function brunt.scenario(name, run) end

-- Users who each carry out one of these scenarios, chosen by weight: `brunt.mix { { browse, 90 }, { buy, 10 } }:inject { … }`.
---@param parts { [1]: brunt.Scenario, [2]: number }[]
---@return brunt.Scenario
function brunt.mix(parts) end

-- Called once a run, before any user comes, as a user of its own: what it returns is given to all users and to teardown. It
-- must be data: no functions, no tables within themselves.
---@param run fun(): any
function brunt.setup(run) end

-- Called once a run, when all users have ended.
---@param run fun(given: any)
function brunt.teardown(run) end

-- Open: all come in the same moment.
---@param users integer
---@return brunt.Step
function brunt.at_once(users) end

-- Open: so many users a second.
---@param users_per_s number
---@param length brunt.Duration
---@return brunt.Step
---@overload fun(name: string, options?: brunt.OwnOptions): brunt.Rate A figure of the script's own: how often something is true.
function brunt.rate(users_per_s, length) end

-- Open: from so many users a second to so many.
---@param from number
---@param to number
---@param length brunt.Duration
---@return brunt.Step
function brunt.ramp_rate(from, to, length) end

-- Open: so many users in all, evenly over this time.
---@param users integer
---@param length brunt.Duration
---@return brunt.Step
function brunt.ramp(users, length) end

-- Open: so many users in all, slowly at first, then fast, then slowly again.
---@param users integer
---@param length brunt.Duration
---@return brunt.Step
function brunt.peak(users, length) end

-- Nobody comes for a while; who is there goes on.
---@param length brunt.Duration
---@return brunt.Step
function brunt.nothing_for(length) end

-- Closed: so many users at a time.
---@param users integer
---@param length brunt.Duration
---@return brunt.Step
function brunt.users(users, length) end

-- Closed: from so many users at a time to so many.
---@param from integer
---@param to integer
---@param length brunt.Duration
---@return brunt.Step
function brunt.ramp_users(from, to, length) end

-- Closed: so many users, each for so many iterations. The only step of its injection.
---@param users integer
---@param iterations integer
---@return brunt.Step
function brunt.iterations_each(users, iterations) end

-- Closed: so many users share so many iterations. The only step of its injection.
---@param users integer
---@param iterations integer
---@return brunt.Step
function brunt.iterations_shared(users, iterations) end

---@class brunt.Stairs
---@field from number The first level: users a second, or users.
---@field by number How much higher each next level is.
---@field steps integer How many levels.
---@field hold brunt.Duration How long each is held.
---@field ramp? brunt.Duration How long it takes from one to the next; at once if it does not say.

-- Open: levels of users a second, one after the other.
---@param stairs brunt.Stairs
---@return brunt.Step
function brunt.stairs(stairs) end

-- Closed: levels of users at a time, one after the other.
---@param stairs brunt.Stairs
---@return brunt.Step
function brunt.user_stairs(stairs) end

-- The most calls a second, over all users and scenarios: a rate, or a profile such as "0..1000/30s,1000/5m".
---@param profile number|string
function brunt.throttle(profile) end

-- A condition on a figure: `"< 50ms"`, or `{ "< 50ms", abort = true }`, which ends the run when it is beyond repair.
---@alias brunt.Condition string|{ [1]: string, abort?: boolean }

-- What must hold at the end, else brunt exits with 1: `brunt.expect { p99 = "< 50ms", ["home:p95"] = "< 20ms" }`.
---@param conditions table<string, brunt.Condition>
function brunt.expect(conditions) end

-- What was given with `--env NAME=VALUE`, else `default`; without one it is an error.
---@param name string
---@param default? string
---@return string
function brunt.env(name, default) end

-- What came of a call, to be looked into; false, or an error that names what was not there, where nothing is found.
---@class brunt.Body
---@field body string
local Body = {}

-- The body as JSON. Raises an error if it is not JSON.
---@return any
function Body:json() end

-- Counts the answer as not ok, for this reason.
---@param reason string
function Body:fail(reason) end

-- Counts the answer as ok, whatever its status.
function Body:pass() end

-- Where a pattern of Lua stands in the body, as string.find; false if it does not.
---@param pattern string
---@param plain? boolean The pattern is a text as it is.
---@return integer|false first
---@return integer? last
---@return any ...
function Body:find(pattern, plain) end

-- What a pattern of Lua captures in the body, as string.match; false if it is not there.
---@param pattern string
---@return any ...
function Body:match(pattern) end

-- The first element of HTML that a CSS selector matches. Raises an error if none does.
---@param selector string
---@return brunt.Element
function Body:css(selector) end

-- All elements of HTML that a CSS selector matches.
---@param selector string
---@return brunt.Element[]
function Body:css_all(selector) end

-- Whether a CSS selector matches an element of HTML.
---@param selector string
---@return boolean
function Body:has_css(selector) end

-- The first that is at an XPath 1.0, in XML or HTML: the text of a node, or the text, number or boolean that the XPath says.
-- Raises an error if there is nothing.
---@param path string
---@param namespaces? table<string, string> The namespaces of XML by their prefixes in the path.
---@return string|number|boolean
function Body:xpath(path, namespaces) end

-- All that is at an XPath.
---@param path string
---@param namespaces? table<string, string>
---@return (string|number|boolean)[]
function Body:xpath_all(path, namespaces) end

-- Whether something is at an XPath, or what it says is true.
---@param path string
---@param namespaces? table<string, string>
---@return boolean
function Body:has_xpath(path, namespaces) end

-- The first value at a JSONPath (RFC 9535). Raises an error if there is none.
---@param path string
---@return any
function Body:jsonpath(path) end

-- All values at a JSONPath.
---@param path string
---@return any[]
function Body:jsonpath_all(path) end

-- Whether a value is at a JSONPath.
---@param path string
---@return boolean
function Body:has_jsonpath(path) end

-- The first match of a regular expression: the whole without groups, what the groups captured as several values, or a table by
-- their names. Raises an error if there is none.
---@param pattern string
---@return string|table<string, string|false> first
---@return string|false ...
function Body:regex(pattern) end

-- All matches of a regular expression: texts without groups, else tables of what the groups captured.
---@param pattern string
---@return (string|table)[]
function Body:regex_all(pattern) end

-- Whether a regular expression matches.
---@param pattern string
---@return boolean
function Body:has_regex(pattern) end

-- An element of HTML.
---@class brunt.Element
---@field name string Such as "input".
---@field text string All text in it.
---@field attributes table<string, string>
local Element = {}

-- The value of an attribute. Raises an error if there is none of that name.
---@param name string
---@return string
function Element:attr(name) end

-- Waits: a fixed time, one between two, or exponentially distributed ones around a mean.
---@param length brunt.Duration|{ exponential: brunt.Duration }
---@param longest? brunt.Duration
function brunt.pause(length, longest) end

-- From now on, this user's iterations begin at least so long after one another.
---@param length brunt.Duration
function brunt.pacing(length) end

-- Times what `run` does as one, with and without its pauses; gives what `run` returns. Groups within groups are named
-- `outer/inner`.
---@generic T
---@param name string
---@param run fun(...): T
---@param ... any
---@return T
function brunt.group(name, run, ...) end

-- Counts whether each of these holds. One that does not marks the answer as not ok; its time still counts. True if all hold. One
-- whose value is nil does not, where the table is written in the call.
---@param subject any An answer, or whatever the functions among the checks look at.
---@param checks table<string, any> By name: true or false, or a function of `subject` that says so.
---@return boolean
function brunt.check(subject, checks) end

-- Writes down what is said, into the file of --log, and with --once.
---@param level "debug"|"info"|"warn"|"error"
---@param ... any
function brunt.log(level, ...) end

-- Ends this iteration with an error, which is counted.
---@param message? string
function brunt.fail(message) end

-- Ends this user, here and now, without an error.
function brunt.stop_user() end

-- Ends the run for everybody.
---@param reason? string
function brunt.stop_run(reason) end

---@class brunt.OwnOptions
---@field unit? string What its values are counted in, for reports.

-- A sum, in the report by its name.
---@class brunt.Counter
local Counter = {}

---@param amount? number 0 or above; 1 unless it says otherwise.
---@param tags? table<string, any> What it is counted by besides: `{ page = "a" }` is `NAME{page=a}`.
function Counter:add(amount, tags) end

-- How often something is true.
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

-- Does `run` over and over for so long; what has begun by then is done to its end.
---@param length brunt.Duration
---@param run fun(...)
---@param ... any
function brunt.during(length, run, ...) end

-- Does one of these functions, each by its weight, and gives what it returns.
---@param choices { [1]: fun(): any, [2]: number }[]
---@return any ...
function brunt.choose(choices) end

---@class brunt.RetryOptions
---@field times? integer How often at most: 3 unless it says otherwise.
---@field pause? brunt.Duration Between two tries.
---@field when? fun(...): boolean? Whether what was returned is a failure; else an answer that is not ok is one.

-- Does `run` until it succeeds: it fails by an error too. Gives what it returned last, or raises its last error.
---@generic T
---@param options brunt.RetryOptions
---@param run fun(...): T
---@param ... any
---@return T
function brunt.retry(options, run, ...) end

-- Waits until so many users are at the meeting of this name. Whether they came within the timeout.
---@param name string
---@param users integer
---@param timeout? brunt.Duration A minute unless it says otherwise.
---@return boolean
function brunt.rendezvous(name, users, timeout) end

-- What a user does beside what it does.
---@class brunt.Task
local Task = {}

-- Waits for its end, and gives what it returned; nil and "timeout" if that takes longer. Raises its error.
---@param timeout? brunt.Duration
---@return any ...
function Task:wait(timeout) end

-- Ends it where it stands.
function Task:cancel() end

-- Whether it has ended.
---@return boolean
function Task:has_ended() end

-- Begins to do `run` while the user goes on. The task ends with the user's iteration.
---@param run fun(...): any
---@param ... any
---@return brunt.Task
function brunt.spawn(run, ...) end

-- Waits for all tasks of the user; false and "timeout" if that takes longer. Raises the first error of one.
---@param timeout? brunt.Duration
---@return boolean
---@return string?
function brunt.wait(timeout) end

-- Does `run`, but no longer than this: gives what it returns, or nil and "timeout".
---@param run fun(): any
---@param length brunt.Duration
---@return any ...
function brunt.timeout(run, length) end

-- Rows that users take, each in turn, one for all users and workers.
---@class brunt.Feeder
local Feeder = {}

-- The next row: a table by the names of the columns, a line, or a value. When a queue is empty, the scenario ends.
---@return any
function Feeder:next() end

-- Data, loaded once and shared.
---@class brunt.Data
local Data = {}

-- In order, beginning anew after the last.
---@return brunt.Feeder
function Data:circular() end

-- Any of them, each time.
---@return brunt.Feeder
function Data:random() end

-- Each once in a random order, then all again in the same.
---@return brunt.Feeder
function Data:shuffled() end

-- Each once over the whole run; then the scenario that asks ends, or the run.
---@param options? { at_end?: "stop_scenario"|"stop_run" }
---@return brunt.Feeder
function Data:queue(options) end

-- Each user has a row of its own for its whole life. Where there are more users than rows the run ends, or rows are given out again.
---@param options? { at_end?: "stop_run"|"repeat" }
---@return brunt.Feeder
function Data:per_user(options) end

-- How many rows there are.
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

-- A value of Lua as JSON; nil and the problem if there is no such JSON.
---@param value any
---@return string? text
---@return string? problem
function json.encode(value) end

-- A text of JSON as a value of Lua; nil and the problem if it is not JSON. JSON's null is `brunt.null`.
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

-- A UUID of version 4. All that is random comes from the run's seed; each thread has random numbers of its own.
---@return string
function brunt.uuid() end

-- Marks a list as one: an empty one is `[]` in JSON, and no `{}`.
---@param list? any[]
---@return any[]
function brunt.array(list) end

-- The table of the user that runs now, `vu.store`: what it keeps from one iteration to the next.
---@type table
brunt.user = nil

-- A whole number from `least` to `most`, both included; without them a number from 0 to 1, without 1.
---@param least? integer
---@param most? integer
---@return number
function brunt.random(least, most) end

-- So many random letters of an alphabet: letters and digits of ASCII unless it says otherwise.
---@param length integer
---@param alphabet? string
---@return string
function brunt.random_string(length, alphabet) end

-- One of a list; or a list of so many of them, each at most once.
---@generic T
---@param list T[]
---@param count integer
---@return T[]
---@overload fun(list: T[]): T
function brunt.sample(list, count) end

-- How a digest is written: hexadecimal digits unless it says otherwise.
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

-- What base64 stands for, in either alphabet, with padding or without. Raises an error if it is not base64.
---@param text string
---@return string
function brunt.base64_decode(text) end

-- Hexadecimal digits, in lower case.
---@param text string
---@return string
function brunt.hex(text) end

-- What hexadecimal digits stand for. Raises an error if they are none, or one is without its partner.
---@param text string
---@return string
function brunt.hex_decode(text) end

-- A text for a URL: all but letters, digits and - . _ ~ as %XX.
---@param text string
---@return string
function brunt.url_encode(text) end

-- What a text in a URL stands for; + stays +. Raises an error if two digits do not follow a %.
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

-- The claims and the header of a token. Its signature is not checked. Raises an error if it is no token.
---@param token string
---@return table<string, any> claims
---@return table<string, any> header
function jwt.claims(token) end

-- The time of day: seconds since 1970 in UTC, with fractions.
---@return number
function brunt.now() end

-- A date in UTC, by the format of C's strftime, with %3f, %6f and %9f for fractions of a second: "%Y-%m-%dT%H:%M:%SZ" unless it says
-- otherwise.
---@param format? string
---@param time? number Seconds since 1970; now unless it says otherwise.
---@return string
function brunt.date(format, time) end
