-- gRPC ------------------------------------------------------------------------------------------------------------------

---@class brunt.GrpcOptions
---@field base string Where calls go, such as "grpc://127.0.0.1:50051"; `--base-url` takes its place.
---@field proto? string|string[] The .proto files, beside the script; what they import is read, too.
---@field proto_path? string|string[] Where imported files are looked for as well.
---@field descriptor_set? string A descriptor set instead.
---@field reflection? boolean Ask the server for the schema instead, when the script is loaded.
---@field metadata? table<string, string> Metadata of every call.
---@field deadline? brunt.Duration What calls tell the server as their timeout (grpc-timeout).
---@field compress? "gzip" How messages are compressed.
---@field max_answer? integer The most bytes of a message in an answer.
---@field ping_every? brunt.Duration How long the server is silent before it is pinged; from 1s.
---@field stall_timeout? brunt.Duration The longest gap between the messages of a stream: a longer one fails as "stalled".
---@field timeout? brunt.Duration How long a call may take, where it does not say.
---@field connections? integer|"shared" The most connections of one user, 6 unless it says otherwise; or all users share as few as their calls take.
---@field pool? integer So many connections in all, shared by the users.
---@field pipeline? integer Calls in flight on one connection at once (default 1).

-- What came of a call.
---@class brunt.GrpcAnswer
---@field status integer 0 is OK.
---@field ok boolean
---@field value any The message, or a list of messages where the server streams.
---@field message? string What the server says of a status that is not OK.
---@field details? { type: string, value: any }[] Its details.
---@field error? string The name of the failure, such as "timeout" or "protocol".
---@field reason? string The failure in words.
---@field timings brunt.Timings
---@field metadata fun(self: brunt.GrpcAnswer, name: string): string? A field of its metadata or trailers, before the user's next call.

-- A call whose messages are sent and received one by one. It is called for its next message: `for message in stream do`. Once it is
-- over, it has what its answer has.
---@class brunt.GrpcStream: brunt.GrpcAnswer
local GrpcStream = {}

-- Sends a message; false if the call had ended.
---@param message table
---@return boolean
function GrpcStream:send(message) end

-- Says that nothing more will be sent (half-close).
---@return brunt.GrpcStream
function GrpcStream:finish() end

-- Waits for the next message: nil once the call is over, nil and "timeout" if none has come in time.
---@param options? { timeout?: brunt.Duration }
---@return any message
---@return "timeout"?
function GrpcStream:receive(options) end

-- The next message, or nil at the end.
---@return any
function GrpcStream:next() end

-- Does `run` with each message until the call is over, beside what the user does.
---@param run fun(message: any)
---@return brunt.Task
function GrpcStream:on_message(run) end

-- Cancels a call that goes on.
---@return brunt.GrpcStream
function GrpcStream:close() end

---@class brunt.GrpcClient
local GrpcClient = {}

-- Calls a method: with a table of its message's fields, or a list of such tables where the client streams.
---@param method string Such as "shop.Cart/Add".
---@param arguments? table
---@param options? { name?: string, tags?: table<string, string>, timeout?: brunt.Duration, metadata?: table<string, string> }
---@return brunt.GrpcAnswer
function GrpcClient:call(method, arguments, options) end

-- Begins a call of a method that streams, whose messages are sent and received one by one.
---@param method string Such as "shop.Cart/Chat".
---@param arguments? table What it begins with: a message, or a list of messages where the client streams.
---@param options? { name?: string, tags?: table<string, string>, timeout?: brunt.Duration, metadata?: table<string, string> }
---@return brunt.GrpcStream
function GrpcClient:stream(method, arguments, options) end

-- A client for the whole run: make it at the top of the script.
---@param options brunt.GrpcOptions
---@return brunt.GrpcClient
function brunt.grpc(options) end
