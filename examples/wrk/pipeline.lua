-- Several requests are sent at once: a string of them is as many requests.
--
--   brunt -s pipeline.lua URL

function init(args)
  local requests = {
    wrk.format("GET", wrk.path .. "?first"),
    wrk.format("GET", wrk.path .. "?second"),
    wrk.format("POST", wrk.path .. "?third", { ["Content-Type"] = "text/plain" }, "third"),
  }
  batch = table.concat(requests)
end

function request()
  return batch
end
