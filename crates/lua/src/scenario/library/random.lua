-- Random values, all of them from `math.random`, which is seeded by the run's seed and the thread's number.

local _, brunt, core = ...

local floor, format, gmatch, random, concat = math.floor, string.format, string.gmatch, math.random, table.concat
local misused, shown, text_of = core.misused, core.shown, core.text_of

-- The longest text, and the largest whole number that a number of Lua holds exactly.
local MOST_LENGTH, EXACT = 1048576, 9007199254740992
local LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

local function is_whole(value)
  return type(value) == "number" and value == floor(value) and value >= -EXACT and value <= EXACT
end

-- A UUID of version 4 (RFC 9562 §5.4).
function brunt.uuid()
  return format(
    "%08x-%04x-4%03x-%04x-%04x%08x",
    random(0, 0xffffffff), random(0, 0xffff), random(0, 0xfff), random(0x8000, 0xbfff), random(0, 0xffff),
    random(0, 0xffffffff)
  )
end

function brunt.random(least, most)
  if least == nil and most == nil then
    return random()
  elseif not is_whole(least) or not is_whole(most) then
    return misused("brunt.random takes two whole numbers, not " .. shown(least) .. " and " .. shown(most), least, most)
  elseif least > most then
    return misused("brunt.random takes the smaller number first, not " .. least .. " and " .. most)
  end
  return random(least, most)
end

-- The letters of alphabets, so that each is split once. If a script makes alphabets up without end, further ones are
-- not remembered.
local alphabets, known, MOST_ALPHABETS = {}, 0, 100

local function letters_of(alphabet)
  local letters = alphabets[alphabet]
  if not letters then
    letters = {}
    -- A character of UTF-8 counts as one letter, however many bytes it has.
    for letter in gmatch(alphabet, "[%z\1-\127\194-\244][\128-\191]*") do
      letters[#letters + 1] = letter
    end
    if known < MOST_ALPHABETS then
      known = known + 1
      alphabets[alphabet] = letters
    end
  end
  return letters
end

function brunt.random_string(length, alphabet)
  if not is_whole(length) or length < 0 or length > MOST_LENGTH then
    return misused("brunt.random_string takes a length from 0 to " .. MOST_LENGTH .. ", not " .. shown(length), length)
  end
  local from = alphabet == nil and LETTERS or text_of(alphabet)
  local letters = from and letters_of(from)
  if not letters or #letters == 0 then
    local problem = "brunt.random_string takes an alphabet such as \"0123456789\", not "
    return misused(problem .. shown(alphabet), alphabet)
  end
  local drawn, count = {}, #letters
  for place = 1, length do
    drawn[place] = letters[random(count)]
  end
  return concat(drawn)
end

function brunt.sample(list, count)
  if type(list) ~= "table" or #list == 0 then
    return misused("brunt.sample takes a list with something in it, not " .. shown(list), list)
  end
  local length = #list
  if count == nil then
    return list[random(length)]
  elseif not is_whole(count) or count < 0 or count > length then
    local problem = "brunt.sample draws from 0 to as many as the list has, " .. length .. ", not "
    return misused(problem .. shown(count), list, count)
  end
  -- The first draws of a shuffle (Fisher and Yates), which stores only the moved elements.
  local moved, drawn = {}, {}
  for place = 1, count do
    local other = random(place, length)
    drawn[place] = list[moved[other] or other]
    moved[other] = moved[place] or place
  end
  return drawn
end
