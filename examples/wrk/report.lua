-- A report of one's own: a line of JSON after the usual one.
--
--   brunt -s report.lua URL

local function field(name, value)
  return string.format('"%s": %s', name, value)
end

function done(summary, latency, requests)
  local errors = summary.errors
  local fields = {
    field("duration_us", summary.duration),
    field("requests", summary.requests),
    field("bytes", summary.bytes),
    field("requests_per_s", string.format("%.1f", summary.requests / summary.duration * 1e6)),
    field("latency_min_us", latency.min),
    field("latency_mean_us", string.format("%.1f", latency.mean)),
    field("latency_stdev_us", string.format("%.1f", latency.stdev)),
    field("latency_p50_us", latency:percentile(50)),
    field("latency_p99_us", latency:percentile(99)),
    field("latency_max_us", latency.max),
    field("latency_values", #latency),
    field("latency_first_us", (latency(1))),
    field("thread_requests_per_s_max", requests.max),
    field("errors", errors.connect + errors.read + errors.write + errors.timeout),
    field("bad_statuses", errors.status),
  }
  print("{" .. table.concat(fields, ", ") .. "}")
end
