-- WebSocket -------------------------------------------------------------------------------------------------------------

---@class brunt.WsOptions
---@field base? string Where connections go, such as "ws://127.0.0.1:9001/chat"; `--base-url` takes its place.
---@field headers? table<string, string> For every handshake.
---@field subprotocols? string[] Offered by preference.
---@field deflate? boolean Whether compression is offered.
---@field timeout? brunt.Duration How long a call may take, where it does not say.

---@class brunt.WsCallOptions
---@field name? string What it is counted as; else "connect", "send", "receive", "request", "ping", "close".
---@field tags? table<string, string> What else it is counted under, each as `key=value`.
---@field timeout? brunt.Duration How long it may take.

---@class brunt.WsConnectOptions: brunt.WsCallOptions
---@field headers? table<string, string>

---@class brunt.WsSendOptions: brunt.WsCallOptions
---@field binary? boolean

---@class brunt.WsReceiveOptions: brunt.WsCallOptions
---@field match? string|fun(message: brunt.WsMessage): boolean? A text that the message contains, or a function of it.
---@field optional? boolean Whether it is no failure, and counts for nothing, if no message comes in time.

---@class brunt.WsRequestOptions: brunt.WsCallOptions
---@field match? string|fun(message: brunt.WsMessage): boolean? A text that the message contains, or a function of it.
---@field binary? boolean

---@class brunt.WsCloseOptions: brunt.WsCallOptions
---@field code? integer 1000 unless it says otherwise.
---@field reason? string

-- What came of a call.
---@class brunt.WsMessage: brunt.Body
---@field status integer 0 for messages, HTTP's for handshakes.
---@field ok boolean
---@field error? string The name of the failure, such as "timeout", if there was no answer.
---@field reason? string The failure in words.
---@field text boolean Whether it was a text message.
---@field timings brunt.Timings

-- A connection of one user, and what came of its handshake.
---@class brunt.WsSocket: brunt.WsMessage
local Socket = {}

-- Sends a message; ends when the operating system has taken it.
---@param message string
---@param options? brunt.WsSendOptions
---@return brunt.WsMessage
function Socket:send(message, options) end

-- Waits for the next message, or the next that matches. Those before it that do not can be received later.
---@param options? brunt.WsReceiveOptions
---@return brunt.WsMessage
function Socket:receive(options) end

-- Sends a message and waits for one that comes after it. Those that do not match can be received later.
---@param message string
---@param options? brunt.WsRequestOptions
---@return brunt.WsMessage
function Socket:request(message, options) end

---@class brunt.WsListenOptions
---@field name? string What messages are counted as; else "message".
---@field tags? table<string, string>
---@field match? string|fun(message: brunt.WsMessage): boolean? A text that a message contains, or a function of it; others are left to others.

-- Does `run` with each message that no `receive` or `request` takes, until the connection ends, beside what the user does.
---@param run fun(message: brunt.WsMessage)
---@param options? brunt.WsListenOptions
---@return brunt.Task
function Socket:on_message(run, options) end

-- Does `run` each time that so long has passed until the connection ends, beside what the user does.
---@param interval brunt.Duration
---@param run fun(socket: brunt.WsSocket)
---@return brunt.Task
function Socket:every(interval, run) end

-- Sends a ping, and waits for its pong.
---@param options? brunt.WsCallOptions
---@return brunt.WsMessage
function Socket:ping(options) end

-- Says goodbye, and waits until the server has. Ends what listens on the socket, and what comes back to it.
---@param options? brunt.WsCloseOptions
---@return brunt.WsMessage
function Socket:close(options) end

---@class brunt.WsClient
local Ws = {}

-- Connects: to the base, to another path there, or to a whole URL.
---@param url? string
---@param options? brunt.WsConnectOptions
---@return brunt.WsSocket
function Ws:connect(url, options) end

-- A client for the whole run: make it at the top of the script.
---@param options brunt.WsOptions|string The string is the base.
---@return brunt.WsClient
function brunt.ws(options) end
