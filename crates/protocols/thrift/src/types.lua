-- Thrift ----------------------------------------------------------------------------------------------------------------

---@class brunt.ThriftOptions
---@field idl string The IDL's file, beside the script; what it includes is read, too.
---@field address string Where calls go, such as "127.0.0.1:9090"; `--base-url` takes its place.
---@field service? string Needed where the IDL has several.
---@field idl_path? string[] Where included files are looked for as well.
---@field protocol? "binary"|"compact"|"json" binary unless it says otherwise.
---@field transport? "unframed"|"framed"|"header"|"http" unframed unless it says otherwise.
---@field multiplexed? boolean Whether calls name the service.
---@field max_answer? integer The most bytes of one answer.
---@field timeout? brunt.Duration How long a call may take, where it does not say.
---@field connections? integer The most connections of one user; 6 unless it says otherwise.
---@field pool? integer So many connections in all, shared by the users.
---@field pipeline? integer Calls in flight on one connection at once (default 1).

-- What came of a call.
---@class brunt.ThriftAnswer
---@field status integer 0 if it returned, else the number of the exception that it threw.
---@field ok boolean
---@field value any What the method returned.
---@field exception? { name: string, value: table } The declared exception that it threw.
---@field error? string The name of the failure, such as "timeout" or "exception".
---@field reason? string The failure in words.
---@field timings brunt.Timings

-- A service: call its methods with a table of their arguments.
---@class brunt.ThriftClient
---@field [string] fun(self: brunt.ThriftClient, arguments?: table, options?: { name?: string, tags?: table<string, string>, timeout?: brunt.Duration }): brunt.ThriftAnswer

-- A client for the whole run: make it at the top of the script.
---@param options brunt.ThriftOptions
---@return brunt.ThriftClient
function brunt.thrift(options) end
