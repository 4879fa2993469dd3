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

-- What each user does last, once its iterations are over. Its calls count; it is no iteration.
---@param run fun(vu: brunt.User, given: any)
---@return brunt.Scenario
function Scenario:on_stop(run) end

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

-- Called once the run is over, with the document of `--format json` as a table. Returns texts by the names of their files, which
-- are written where `--allow-write` says; "stdout" is standard output.
---@param run fun(summary: table): table<string, string>?
function brunt.handle_summary(run) end

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

-- Whether the body is JSON as a JSON Schema has it. Counts that as a check, called `name` or "matches_schema"; one that does not hold says where
-- and why.
---@param schema table|string The schema, or its text, as `brunt.file` gives it.
---@param name? string
---@return boolean
function Body:matches_schema(schema, name) end

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
