-- HTTP ----------------------------------------------------------------------------------------------------------------

---@class brunt.HttpOptions
---@field base? string Where calls go, such as "http://127.0.0.1:8080"; `--base-url` takes its place.
---@field headers? table<string, string|false> For every request; `["User-Agent"] = false` leaves that out.
---@field connections? integer|"shared" The most connections of one user, to each host, 6 unless it says otherwise; or (over HTTP/2) all users share as few as their calls take.
---@field pool? integer So many connections in all, shared by the users, instead of connections of their own.
---@field http? "1.1"|"2"|"auto" The version of HTTP: "auto" takes what the TLS handshake chooses; "1.1" unless it says otherwise.
---@field pipeline? integer Calls in flight on one connection at once (default 1); with HTTP/2, each on a stream of its own.
---@field redirects? integer|false How many redirects are followed in a row, 10 unless it says otherwise; false or 0 for none.
---@field cookies? boolean|"iteration" Whether each user keeps cookies, or forgets them after each iteration; true unless it says otherwise.
---@field basic? { [1]: string, [2]: string } User and password, for every request.
---@field bearer? string A token, for every request.
---@field digest? { [1]: string, [2]: string } User and password by Digest, for every request.
---@field aws? brunt.AwsCredentials Signs every request by Signature V4.
---@field oauth? brunt.OauthCredentials Fetches a token, and sends it with every request.
---@field timeout? brunt.Duration How long a call may take, where it does not say.
---@field keep_alive? boolean|"iteration" Whether connections are used again: false for a new one for each call, "iteration" for new ones in each iteration.
---@field cert? string The certificate that the client shows, in PEM.
---@field key? string Its private key in PEM; `@NAME` takes it from the environment.
---@field compressed? boolean Whether answers are asked for compressed, as browsers do.
---@field last_message? string The message that ends a stream, such as "[DONE]"; without it a stream fails as "ended_early".
---@field stall_timeout? brunt.Duration The longest gap between messages of a stream; a longer one fails as "stalled".

---@class brunt.CallOptions
---@field name? string What it is counted as; else the method and the path without its query.
---@field tags? table<string, string> What else it is counted under, each as `key=value`.
---@field ok? string|integer|integer[] The statuses that are a success for it, such as `{ 200, 404 }` or `"2xx,404"`.
---@field timeout? brunt.Duration How long it may take.
---@field headers? table<string, string|false> `false` leaves out one that the client sends otherwise.
---@field query? table<string, any> Added to the path; a list comes several times.
---@field body? string|fun(): string? As it is; a function gives it in pieces, nil behind the last, and each is sent as a chunk.
---@field json? any As JSON.
---@field form? table<string, any> As a form.
---@field multipart? table<string, string|brunt.FilePart|(string|brunt.FilePart)[]> As a form with files; a list is several of one name.
---@field basic? { [1]: string, [2]: string } User and password.
---@field bearer? string A token.
---@field digest? { [1]: string, [2]: string } User and password by Digest (RFC 7616).
---@field aws? brunt.AwsCredentials Signs the request by Signature V4.
---@field oauth? brunt.OauthCredentials Fetches a token, and sends it.
---@field redirects? integer|boolean How many redirects are followed in a row.
---@field discard? boolean The body will not be asked for, and is not kept even for a moment.

-- What requests to AWS are signed with.
---@class brunt.AwsCredentials
---@field key string The access key's id.
---@field secret string
---@field session_token? string
---@field region string Such as "eu-central-1".
---@field service string Such as "execute-api" or "s3".

-- What a token is fetched with (OAuth 2.0 client credentials).
---@class brunt.OauthCredentials
---@field token_url string
---@field client string
---@field secret string
---@field scope? string

-- A file in a form.
---@class brunt.FilePart
---@field filename? string
---@field content? string
---@field type? string Such as "image/png".

-- What came of a call. Its body and headers can be read until the user's next call or pause; what was read is kept with the
-- answer.
---@class brunt.Answer: brunt.Body
---@field status integer 0 if there was no answer.
---@field ok boolean Whether there was an answer whose status is a success.
---@field error? string The name of the failure, such as "timeout", if there was no answer.
---@field reason? string The failure in words.
---@field headers table<string, string> By name, in whatever case.
---@field timings brunt.Timings
---@field sizes { received: integer, body: integer } The body's bytes as they came, and decompressed.
---@field url? string Where the last of its redirects led.
---@field resources? brunt.Answer[] What a page brought with it.
---@field keep fun(self: brunt.Answer): brunt.Answer Reads all of it, so that it stays after the user's next call or pause.

-- In seconds.
---@class brunt.Timings
---@field response number From when the call was due to its end.
---@field service number From when it was sent to its end.
---@field first_byte number From when it was sent to the first byte of its answer.

-- HTTP for virtual users: each has its own cookies and connections.
---@class brunt.Http
local Client = {}

-- The value of the user's cookie that a request to this URL (or to the base) would carry; nil if there is none.
---@param name string
---@param url? string
---@return string?
function Client:cookie(name, url) end

-- Gives the user a cookie, as if an answer had set it.
---@param name string
---@param value any
---@param options? { url?: string, domain?: string, path?: string, secure?: boolean }
function Client:set_cookie(name, value, options) end

-- Forgets the user's cookies: those of this name, or all.
---@param name? string
function Client:clear_cookies(name) end

---@param path string A path, or a whole URL.
---@param options? brunt.CallOptions
---@return brunt.Answer
function Client:get(path, options) end

---@param path string A path, or a whole URL.
---@param options? brunt.CallOptions
---@return brunt.Answer
function Client:head(path, options) end

---@param path string A path, or a whole URL.
---@param options? brunt.CallOptions
---@return brunt.Answer
function Client:post(path, options) end

---@param path string A path, or a whole URL.
---@param options? brunt.CallOptions
---@return brunt.Answer
function Client:put(path, options) end

---@param path string A path, or a whole URL.
---@param options? brunt.CallOptions
---@return brunt.Answer
function Client:patch(path, options) end

---@param path string A path, or a whole URL.
---@param options? brunt.CallOptions
---@return brunt.Answer
function Client:delete(path, options) end

---@param path string A path, or a whole URL.
---@param options? brunt.CallOptions
---@return brunt.Answer
function Client:options(path, options) end

-- A request with whatever method.
---@param method string
---@param path string A path, or a whole URL.
---@param options? brunt.CallOptions
---@return brunt.Answer
function Client:request(method, path, options) end

-- Several requests at once, as a browser loads what is in a page: paths to GET, or { method, path, options }. Gives the
-- answers in the same order.
---@param requests (string|{ [1]: string, [2]: string, [3]: brunt.CallOptions? })[]
---@return brunt.Answer[]
function Client:batch(requests) end

---@class brunt.PageOptions: brunt.CallOptions
---@field resources? string The name that all that the page names is counted by; else each by its path.

-- A page and what it names, as browsers fetch them: then images, scripts and styles at once, but for what the user's cache has.
---@param path string A path, or a whole URL.
---@param options? brunt.PageOptions
---@return brunt.Answer
function Client:page(path, options) end

-- Of a request whose answer comes as messages.
---@class brunt.EventOptions
---@field name? string What it is counted as; else the method and the path without its query.
---@field tags? table<string, string> What else it is counted under, each as `key=value`.
---@field timeout? brunt.Duration How long the whole stream may take.
---@field method? string GET, or POST with a body, unless it says otherwise.
---@field messages? "sse"|"lines"|"chunks" Server-sent events unless it says otherwise.
---@field headers? table<string, string>
---@field query? table<string, any> Added to the path; a list comes several times.
---@field body? string|fun(): string? As it is; a function gives it in pieces, nil behind the last, and each is sent as a chunk.
---@field json? any As JSON.
---@field form? table<string, any> As a form.
---@field multipart? table<string, string|brunt.FilePart|(string|brunt.FilePart)[]> As a form with files; a list is several of one name.
---@field basic? { [1]: string, [2]: string } User and password.
---@field bearer? string A token.
---@field aws? brunt.AwsCredentials Signs the request by Signature V4.

-- A message of a stream.
---@class brunt.Event: brunt.Body
---@field data string
---@field event string Its name; "message" for events without one.
---@field id string The last id that the stream gave; "" for none.

-- A call whose answer comes as messages: called for the next, and nil at the end. Then it is the call's answer.
---@class brunt.Stream: brunt.Answer
---@operator call: brunt.Event?
local Stream = {}

-- Waits for the next message; nil at the end.
---@return brunt.Event?
function Stream:next() end

-- Leaves the stream: its connection is closed, and it counts as answered if a message has come.
---@return brunt.Stream
function Stream:close() end

-- A request whose answer comes as messages, to be taken one by one: `for event in http:events("/events") do … end`.
---@param path string A path, or a whole URL.
---@param options? brunt.EventOptions
---@return brunt.Stream
function Client:events(path, options) end

-- HTTP for virtual users. Made at the top of the script, for the whole run; a text is its base.
---@param options? brunt.HttpOptions|string
---@return brunt.Http
function brunt.http(options) end
