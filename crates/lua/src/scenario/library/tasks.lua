-- Tasks, which run beside a user's own function. Each is a coroutine that the engine resumes like a user, but it shares
-- its user's connections, cookies and `vu`, and ends with its user's iteration.

local host, brunt, core, shared = ...

local yield, create = coroutine.yield, coroutine.create
local wrong, raise, shown, seconds = core.wrong, core.raise, core.shown, core.seconds
local waiting = core.waiting_user
local SPAWN, JOIN, CANCEL, TASK_ENDED =
  host.operations.SPAWN, host.operations.JOIN, host.operations.CANCEL, host.operations.TASK_ENDED

local Task = core.object()
Task.__index = Task

-- The most tasks that a user may have at once.
local MOST_TASKS = 100

-- In a rehearsal, the tasks not waited for yet: a rehearsal has a single coroutine, which runs them last.
local unrehearsed = {}

local function go_through(task)
  if not task.ended then
    task.ended = true
    task.values = { n = 0 }
    local run = task.run
    task.run = nil
    task.values = (function(...)
      return { n = select("#", ...), ... }
    end)(run(unpack(task, 1, task.n)))
  end
end

function shared.rehearse_tasks()
  for _, task in ipairs(unrehearsed) do
    go_through(task)
  end
end

-- The life of a task, from its first step to its last.
local function live(task, run, ...)
  local function keep(...)
    task.values = { n = select("#", ...), ... }
  end
  keep(run(...))
  task.ended = true
  yield(TASK_ENDED)
end

local function alive(tasks)
  local count = 0
  for place = #tasks, 1, -1 do
    local task = tasks[place]
    if task.ended and (task.told or not task.problem) then
      table.remove(tasks, place)
    elseif not task.ended then
      count = count + 1
    end
  end
  return count
end

-- Starts `run` as a task, while its user goes on.
function brunt.spawn(run, ...)
  local user = waiting("brunt.spawn")
  if type(run) ~= "function" then
    wrong("brunt.spawn takes a function, not " .. shown(run), true)
  end
  local home = user.home or user
  if shared.is_rehearsing() then
    local task = setmetatable({ run = run, n = select("#", ...), ... }, Task)
    unrehearsed[#unrehearsed + 1] = task
    return task
  end
  local tasks = home.tasks
  if not tasks then
    tasks = {}
    home.tasks = tasks
  elseif #tasks >= MOST_TASKS and alive(tasks) >= MOST_TASKS then
    raise("this user has " .. MOST_TASKS .. " tasks, and may have no more at once: wait for some")
  end
  local task = setmetatable({ ended = false }, Task)
  local given = { n = select("#", ...), ... }
  local slot = yield(SPAWN)
  task.slot = slot
  shared.users[slot] = {
    home = home,
    task = task,
    vu = home.vu,
    paused = 0,
    goes_on = false,
    again = false,
    group = user.group,
    thread = create(function()
      live(task, run, unpack(given, 1, given.n))
    end),
  }
  tasks[#tasks + 1] = task
  return task
end

-- The values that an ended task has returned. Raises its error.
local function values_of(task)
  task.told = true
  if task.problem then
    error(task.problem, 0)
  end
  local values = task.values
  if values then
    return unpack(values, 1, values.n)
  end
end

-- Waits until `is_done()` or the time is up; returns whether it is done.
local function join(user, length, is_done)
  local ends = length and user.now + length * 1e9
  while not is_done() do
    local left
    if ends then
      left = (ends - user.now) / 1e9
      if left <= 0 then
        return false
      end
    end
    core.wait_for(user, JOIN, left or -1)
  end
  return true
end

local function check_task(whose, task)
  if getmetatable(task) ~= Task then
    wrong(whose .. " is a method of what brunt.spawn gives: call it with a colon, as in task:" .. whose .. "()", true)
  end
end

-- Waits until the task has ended, and returns the values of its function. With `timeout`, it waits no longer than that:
-- then it returns nil and "timeout", and the task goes on. Raises the task's error, if it ended with one.
function Task:wait(timeout)
  check_task("wait", self)
  local user = waiting("waiting for a task")
  local length = timeout ~= nil and seconds("a task's timeout", timeout) or nil
  if shared.is_rehearsing() then
    go_through(self)
    return values_of(self)
  elseif user.task == self then
    wrong("a task cannot wait for itself", true)
  end
  if not join(user, length, function()
    return self.ended
  end) then
    return nil, "timeout"
  end
  return values_of(self)
end

-- Ends the task where it stands. The end of its iteration waits for a call under way, which is counted.
function Task:cancel()
  check_task("cancel", self)
  local user = waiting("cancelling a task")
  if shared.is_rehearsing() or self.ended then
    return
  elseif user.task == self then
    brunt.exit_here()
  end
  self.ended = true
  yield(CANCEL, self.slot)
end

-- Whether it has ended.
function Task:has_ended()
  check_task("has_ended", self)
  return self.ended == true
end

-- Waits until all tasks of the user have ended. Raises the first error among them.
function brunt.wait(timeout)
  local user = waiting("brunt.wait")
  local length = timeout ~= nil and seconds("the timeout of brunt.wait", timeout) or nil
  if shared.is_rehearsing() then
    shared.rehearse_tasks()
    return true
  elseif user.task then
    wrong("brunt.wait waits for all tasks of a user, and is for none of them: use task:wait()", true)
  end
  local tasks = user.tasks or {}
  local done = join(user, length, function()
    for _, task in ipairs(tasks) do
      if not task.ended then
        return false
      end
    end
    return true
  end)
  if not done then
    return false, "timeout"
  end
  for _, task in ipairs(tasks) do
    if task.problem and not task.told then
      values_of(task)
    end
  end
  return true
end

-- Calls `run`, but for no longer than `length`: returns its values, or nil and "timeout".
function brunt.timeout(run, length)
  waiting("brunt.timeout")
  if type(run) ~= "function" then
    wrong("brunt.timeout takes a function and a length, not " .. shown(run), true)
  end
  seconds("the length of brunt.timeout", length)
  local task = brunt.spawn(run)
  local function settle(first, second, ...)
    if not task:has_ended() then
      task:cancel()
    end
    return first, second, ...
  end
  return settle(task:wait(length))
end

-- The error of a task that the script has not been told of.
function shared.problem_of_tasks(user)
  for _, task in ipairs(user.tasks) do
    if task.problem and not task.told then
      return task.problem
    end
  end
end

-- At the end of an iteration: an error that no wait has raised becomes the iteration's; the engine ends the tasks.
function shared.end_tasks(user)
  local problem = shared.problem_of_tasks(user)
  user.tasks, user.goes_on = nil, false
  if problem then
    error(problem, 0)
  end
end
