-- Each thread ends its part after so many answers.
--
--   brunt -s stop.lua URL -- 100

local threads, most = {}, 100

answers = 0

function setup(thread)
  table.insert(threads, thread)
end

function init(args)
  most = tonumber(args[1]) or most
end

function response()
  answers = answers + 1
  if answers == most then
    wrk.thread:stop()
  end
end

function done(summary, latency, requests)
  for number, thread in ipairs(threads) do
    print(string.format("thread %d answers %d", number, thread:get("answers")))
  end
end
