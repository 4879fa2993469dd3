---@meta brunt
-- What brunt's scenarios are written with, for editors that speak LuaLS (https://luals.github.io): they complete, check and
-- show it. Written by `brunt types`; nothing of it is run.

---@class brunt
local brunt = {}

-- A length of time: seconds as a number, or a text with its unit such as "500ms", "30s", "5m".
---@alias brunt.Duration number|string

-- One virtual user. Its table belongs to the user: `store` keeps the script's values from one iteration to the next.
---@class brunt.User
---@field id integer Unique over the whole run, from 1.
---@field iteration integer Which iteration of this user it is, from 1.
---@field scenario string The name of its scenario.
---@field store table The user's own; empty at first.

-- A scenario: what a user does in one iteration.
---@class brunt.Scenario
---@field name string
local Scenario = {}

-- The injection of users: steps, one after the other, made by `brunt.rate`, `brunt.users` and the like. Steps with a
-- rate are open: users arrive at their own times, each for one iteration. Steps with users are closed: a number of
-- users is present, each beginning anew when its iteration has ended.
---@class brunt.Injection
---@field [integer] brunt.Step
---@field arrivals? "uniform"|"poisson" How the arrivals of rates are spread; uniform unless it says otherwise.
---@field most_alive? integer The most users alive at once: who comes when there is no place is counted as not admitted.
---@field after? brunt.Scenario Begins when the users of this scenario, injected before, have ended.
---@field reuse_users? boolean Open: an arrival takes a user who is idle, with its `vu`, cookies and connections.
---@field start? brunt.Duration How long it waits before it begins.
---@field longest? brunt.Duration Iterations: how long after its beginning the last of them may begin.
---@field grace? brunt.Duration How long iterations may go on after its end before they are cut off.
---@field ramp_down_grace? brunt.Duration Closed: how long a user that a falling number of users takes away may go on before it is cut off.

-- Sets when users come to the scenario. Once for each scenario, or for a mix.
---@param injection brunt.Injection
---@return brunt.Scenario
function Scenario:inject(injection) end

-- Sets the last function of each user, after its iterations. Its calls count, but it is not an iteration.
---@param run fun(vu: brunt.User, given: any)
---@return brunt.Scenario
function Scenario:on_stop(run) end

-- A step of an injection.
---@class brunt.Step

-- A scenario: a name, and the function that a user runs in one iteration. Its second argument is the value that
-- `brunt.setup` returned.
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

-- Called once the run is over, with the document of `--format json` as a table. Returns texts by the names of their files, which
-- are written where `--allow-write` says; "stdout" is standard output.
---@param run fun(summary: table): table<string, string>?
function brunt.handle_summary(run) end

-- Open: all users come at the same moment.
---@param users integer
---@return brunt.Step
function brunt.at_once(users) end

-- Open: a constant rate of users per second.
---@param users_per_s number
---@param length brunt.Duration
---@return brunt.Step
---@overload fun(name: string, options?: brunt.OwnOptions): brunt.Rate A figure of the script's own: how often something is true.
function brunt.rate(users_per_s, length) end

-- Open: a rate of users per second that changes from `from` to `to`.
---@param from number
---@param to number
---@param length brunt.Duration
---@return brunt.Step
function brunt.ramp_rate(from, to, length) end

-- Open: a number of users in all, spread evenly over the time.
---@param users integer
---@param length brunt.Duration
---@return brunt.Step
function brunt.ramp(users, length) end

-- Open: a number of users in all, slowly at first, then fast, then slowly again.
---@param users integer
---@param length brunt.Duration
---@return brunt.Step
function brunt.peak(users, length) end

-- No arrivals for a while; present users go on.
---@param length brunt.Duration
---@return brunt.Step
function brunt.nothing_for(length) end

-- Closed: a constant number of users at a time.
---@param users integer
---@param length brunt.Duration
---@return brunt.Step
function brunt.users(users, length) end

-- Closed: a number of users at a time that changes from `from` to `to`.
---@param from integer
---@param to integer
---@param length brunt.Duration
---@return brunt.Step
function brunt.ramp_users(from, to, length) end

-- Closed: a number of users, each with a number of iterations. The only step of its injection.
---@param users integer
---@param iterations integer
---@return brunt.Step
function brunt.iterations_each(users, iterations) end

-- Closed: a number of users who share a number of iterations. The only step of its injection.
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

-- Open: levels of users per second, one after the other.
---@param stairs brunt.Stairs
---@return brunt.Step
function brunt.stairs(stairs) end

-- Closed: levels of users at a time, one after the other.
---@param stairs brunt.Stairs
---@return brunt.Step
function brunt.user_stairs(stairs) end

-- Where calls to these hosts go, at the top of the script: `{ ["api.example"] = "127.0.0.1:8080", ["*.example"] = "10.0.0.1" }`. Their
-- Host header and the name in TLS stay.
---@param mapped table<string, string>
function brunt.hosts(mapped) end

-- Hosts that no connection is made to, at the top of the script: names, `*.ads.example`, addresses and networks such as
-- `10.0.0.0/8`. A call to one fails as "blocked".
---@param blocked string[]
function brunt.block(blocked) end

-- The number of this iteration among all iterations of the run that ask for theirs, from 1.
---@return integer
function brunt.run_iteration() end

-- The most calls a second, over all users and scenarios: a rate, or a profile such as "0..1000/30s,1000/5m".
---@param profile number|string
function brunt.throttle(profile) end

-- A condition on a figure: `"< 50ms"`, or `{ "< 50ms", abort = true }`, which ends the run when it is beyond repair.
---@alias brunt.Condition string|{ [1]: string, abort?: boolean }

-- Conditions that must hold at the end, otherwise brunt exits with 1: `brunt.expect { p99 = "< 50ms", ["home:p95"] = "<
-- 20ms" }`.
---@param conditions table<string, brunt.Condition>
function brunt.expect(conditions) end

-- The value given with `--env NAME=VALUE`, otherwise `default`; an error if neither is given.
---@param name string
---@param default? string
---@return string
function brunt.env(name, default) end

-- The answer of a call, which can be searched. Where nothing is found, methods return false or raise an error that
-- names the question.
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

-- The place of a Lua pattern in the body, as string.find; false if it does not match.
---@param pattern string
---@param plain? boolean The pattern is a text as it is.
---@return integer|false first
---@return integer? last
---@return any ...
function Body:find(pattern, plain) end

-- The captures of a Lua pattern in the body, as string.match; false if it does not match.
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

-- The first result of an XPath 1.0, in XML or HTML: the text of a node, or the text, number or boolean to which the
-- XPath evaluates. Raises an error if there is none.
---@param path string
---@param namespaces? table<string, string> The namespaces of XML by their prefixes in the path.
---@return string|number|boolean
function Body:xpath(path, namespaces) end

-- All results of an XPath.
---@param path string
---@param namespaces? table<string, string>
---@return (string|number|boolean)[]
function Body:xpath_all(path, namespaces) end

-- Whether an XPath has a result, or evaluates to true.
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

-- Whether the body is JSON that matches a JSON Schema. It counts as a check, called `name` or "matches_schema"; a
-- failed one tells the place and the reason.
---@param schema table|string The schema, or its text, as `brunt.file` gives it.
---@param name? string
---@return boolean
function Body:matches_schema(schema, name) end

-- The first match of a regular expression: all of it without groups; the captures of groups as several values, or of
-- named groups as a table. Raises an error if there is none.
---@param pattern string
---@return string|table<string, string|false> first
---@return string|false ...
function Body:regex(pattern) end

-- All matches of a regular expression: texts without groups, otherwise tables of the groups' captures.
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

-- The value of an attribute. Raises an error if the element does not have it.
---@param name string
---@return string
function Element:attr(name) end

-- Waits: for a fixed time, a time between two, or an exponentially distributed time around a mean.
---@param length brunt.Duration|{ exponential: brunt.Duration }
---@param longest? brunt.Duration
function brunt.pause(length, longest) end

-- From now on, this user's iterations begin at least this long after one another.
---@param length brunt.Duration
function brunt.pacing(length) end

-- Times `run` as a group, with and without its pauses; returns its values. Groups within groups are named
-- `outer/inner`.
---@generic T
---@param name string
---@param run fun(...): T
---@param ... any
---@return T
function brunt.group(name, run, ...) end

-- Counts whether each of these checks holds. A failed one marks the answer as not ok; its time still counts. Returns
-- whether all hold. A check whose value is nil fails, where the table is written in the call.
---@param subject any An answer, or whatever the functions among the checks look at.
---@param checks table<string, any> By name: true or false, or a function of `subject` that says so.
---@return boolean
function brunt.check(subject, checks) end

-- Logs a text to the file of --log, and with --once.
---@param level "debug"|"info"|"warn"|"error"
---@param ... any
function brunt.log(level, ...) end

-- Ends this iteration with an error, which is counted.
---@param message? string
function brunt.fail(message) end

-- Ends this user, here and now, without an error.
function brunt.stop_user() end

-- Ends the run for everybody. It has failed (exit status 1, with the reason in the report), unless `ok = true` says that it did what it was to do.
---@param reason? string|{ ok?: boolean, reason?: string }
---@param options? { ok?: boolean }
function brunt.stop_run(reason, options) end
