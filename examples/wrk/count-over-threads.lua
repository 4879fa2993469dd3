-- Each thread counts its own answers by status; at the end they are added up.
--
--   brunt -s count-over-threads.lua URL

local threads = {}

function setup(thread)
  thread:set("id", #threads + 1)
  table.insert(threads, thread)
end

function init(args)
  statuses = {}
end

function response(status)
  statuses[status] = (statuses[status] or 0) + 1
end

function done(summary, latency, requests)
  local all, sum = {}, 0
  for _, thread in ipairs(threads) do
    local own = 0
    for status, count in pairs(thread:get("statuses")) do
      all[status] = (all[status] or 0) + count
      own = own + count
    end
    sum = sum + own
    print(string.format("thread %d answers %d", thread:get("id"), own))
  end
  for status, count in pairs(all) do
    print(string.format("status %d answers %d", status, count))
  end
  print(string.format("answers %d of %d", sum, summary.requests))
end
