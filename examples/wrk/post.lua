-- No functions at all: every request is the same.
--
--   brunt -s post.lua URL

wrk.method = "POST"
wrk.body = "name=value"
wrk.headers["Content-Type"] = "application/x-www-form-urlencoded"
