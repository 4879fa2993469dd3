-- TCP -------------------------------------------------------------------------------------------------------------------

---@class brunt.TcpOptions
---@field address string Where connections go, such as "127.0.0.1:6379" or "tls://db.example:6380"; `--base-url` takes its place.
---@field greeting? string What the server says first on each connection ends with this text: it is no answer, and calls begin behind it.
---@field timeout? brunt.Duration How long a call may take, where it does not say.
---@field connections? integer The most connections of one user that `request` makes; 6 unless it says otherwise.
---@field pool? integer So many connections in all for `request`, shared by the users.
---@field pipeline? integer Calls in flight on one connection at once (default 1).

---@class brunt.TcpCallOptions
---@field name? string What it is counted as; else "connect", "send", "receive", "request".
---@field tags? table<string, string> What else it is counted under, each as `key=value`.
---@field timeout? brunt.Duration How long it may take.

---@class brunt.TcpReceiveOptions: brunt.TcpCallOptions
---@field optional? boolean Whether it is no failure, and counts for nothing, if nothing comes in time.

-- What came of a call.
---@class brunt.TcpAnswer: brunt.Body
---@field ok boolean
---@field error? string The name of the failure, such as "timeout", if there was no answer.
---@field reason? string The failure in words.
---@field value any What the reader returned.
---@field body string What was received, without its end or its length; of a `request`, the last piece, until the next call or pause.
---@field timings brunt.Timings
---@field keep fun(self: brunt.TcpAnswer): brunt.TcpAnswer Reads all of it, so that it stays after the user's next call or pause.
local TcpAnswer = {}

-- Reads an answer piece by piece.
---@class brunt.TcpReader
local Reader = {}

---@param count integer
---@return string
function Reader:receive_exactly(count) end

-- Up to this text, which is left out.
---@param text string
---@return string
function Reader:receive_until(text) end

-- Up to the end of the line, which is left out.
---@return string
function Reader:receive_line() end

-- As many bytes as the length before them says.
---@param prefix 1|2|4|"2le"|"4le"
---@return string
function Reader:receive_framed(prefix) end

-- Until the server closes its side.
---@return string
function Reader:receive_rest() end

-- What an answer is: a function that reads it and returns what it means (or nil and what is wrong with it, which fails the
-- call as mismatch), the text that ends it, or how many bytes it has.
---@alias brunt.TcpReads (fun(reader: brunt.TcpReader): any, string?)|string|integer

-- A connection of one user.
---@class brunt.TcpSocket
---@field ok boolean
---@field error? string
---@field reason? string
local TcpSocket = {}

-- Sends bytes; ends when the operating system has taken them.
---@param bytes string
---@param options? brunt.TcpCallOptions
---@return brunt.TcpAnswer
function TcpSocket:send(bytes, options) end

-- Sends bytes and reads their answer, as one call.
---@param bytes string
---@param reads brunt.TcpReads
---@param options? brunt.TcpCallOptions
---@return brunt.TcpAnswer
function TcpSocket:request(bytes, reads, options) end

-- Reads what nobody has asked for, as one call.
---@param reads brunt.TcpReads
---@param options? brunt.TcpReceiveOptions
---@return brunt.TcpAnswer
function TcpSocket:receive(reads, options) end

---@param count integer
---@param options? brunt.TcpReceiveOptions
---@return brunt.TcpAnswer
function TcpSocket:receive_exactly(count, options) end

---@param text string
---@param options? brunt.TcpReceiveOptions
---@return brunt.TcpAnswer
function TcpSocket:receive_until(text, options) end

---@param prefix 1|2|4|"2le"|"4le"
---@param options? brunt.TcpReceiveOptions
---@return brunt.TcpAnswer
function TcpSocket:receive_framed(prefix, options) end

-- The line is in `value`.
---@param options? brunt.TcpReceiveOptions
---@return brunt.TcpAnswer
function TcpSocket:receive_line(options) end

---@param options? brunt.TcpReceiveOptions
---@return brunt.TcpAnswer
function TcpSocket:receive_rest(options) end

-- Closes this side: the server sees the end of what is sent, and may still answer.
---@param options? brunt.TcpCallOptions
---@return brunt.TcpAnswer
function TcpSocket:finish(options) end

function TcpSocket:close() end

---@class brunt.TcpClient
local TcpClient = {}

-- Connects: the connection is the user's own, until it is closed or the user ends.
---@param options? brunt.TcpCallOptions
---@return brunt.TcpSocket
function TcpClient:connect(options) end

-- Sends bytes and reads their answer, as one call, on any connection of the user's.
---@param bytes string
---@param reads brunt.TcpReads
---@param options? brunt.TcpCallOptions
---@return brunt.TcpAnswer
function TcpClient:request(bytes, reads, options) end

-- A client for the whole run: make it at the top of the script.
---@param options brunt.TcpOptions|string The string is the address.
---@return brunt.TcpClient
function brunt.tcp(options) end
