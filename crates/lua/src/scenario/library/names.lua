-- Names that brunt does not have, answered with the nearest that it has: the last part of the library.

local host, brunt, core, shared = ...

-- What other tools call what brunt has.
local BY_OTHERS = {
  sleep = "pause", wait_for = "pause", delay = "pause", think = "pause", think_time = "pause", before = "setup", after = "teardown",
  thresholds = "expect", threshold = "expect", exec = "scenario", abort = "stop_run", fail_run = "stop_run", feed = "csv",
  constant_rate = "rate", constant_users_per_sec = "rate", constant_arrival_rate = "rate", ramping_arrival_rate = "ramp_rate", ramp_users_per_sec = "ramp_rate",
  constant_users = "users", constant_vus = "users", ramping_vus = "ramp_users", per_vu_iterations = "iterations_each", shared_iterations = "iterations_shared",
  wait_time = "pause", between = "pause", assertions = "expect", feeder = "csv", task = "scenario", websocket = "ws", random_int = "random",
  assert = "check", retries = "retry", exit = "exit_here", stop = "stop_run", base64_encode = "base64", base64url_encode = "base64url", transaction = "group",
  stringify = "encode", dumps = "encode", parse = "decode", loads = "decode", trend = "figure", open = "file", random = "uniform",
}

-- Makes reading a name that `of` does not have an error, whatever servers answer. `whose` names the table. Returns it.
local function name_unknown(of, whose)
  local meta = getmetatable(of) or {}
  meta.__index = function(_, name)
    local names = {}
    for known in next, of do
      names[#names + 1] = known
    end
    table.sort(names)
    local meant = BY_OTHERS[name]
    if meant and rawget(of, meant) ~= nil then
      core.wrong(whose .. " has no '" .. name .. "'; did you mean " .. whose .. "." .. meant .. "?", true)
    end
    core.wrong(host.unknown_name(whose, tostring(name), names), true)
  end
  return setmetatable(of, meta)
end

name_unknown(brunt.json, "brunt.json")
core.name_unknown = name_unknown

-- The module itself is complete when all protocols have added theirs.
function shared.complete()
  name_unknown(brunt, "brunt")
end
