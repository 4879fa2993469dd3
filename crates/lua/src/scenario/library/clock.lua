-- The time of day, and dates in UTC.

local host, brunt, core = ...

local floor, date, gsub, format = math.floor, os.date, string.gsub, string.format
local misused, shown = core.misused, core.shown

-- The first and the last second of the years 0000 to 9999, which have four digits, in seconds since 1970.
local EARLIEST, LATEST = -62167219200, 253402300800
-- The conversions of C's strftime since 1999, except those that depend on the machine's place.
local KNOWN = "[aAbBcCdDeFgGhHIjmMnprRStTuUVwWxXyYzZ%%]"
local ISO_8601 = "%Y-%m-%dT%H:%M:%SZ"

brunt.now = host.now

function brunt.date(form, time)
  if form == nil then
    form = ISO_8601
  elseif type(form) ~= "string" then
    return misused("brunt.date takes a format such as \"%Y-%m-%d\", not " .. shown(form), form)
  end
  if time == nil then
    time = host.now()
  elseif type(time) ~= "number" or not (time >= EARLIEST and time < LATEST) then
    return misused("brunt.date takes a time in seconds since 1970, up to the year 9999, not " .. shown(time), time)
  end
  local seconds = floor(time)
  local unknown
  -- Fractions and `%s`: strftime lacks the former, and uses the machine's own zone for the latter.
  local plain = gsub(form, "%%([369]?)(.?)", function(digits, letter)
    if digits ~= "" then
      if letter == "f" then
        return format("%0" .. digits .. "d", floor((time - seconds) * 10 ^ digits))
      end
    elseif letter == "s" then
      return format("%d", seconds)
    elseif letter:find(KNOWN) then
      return nil
    end
    unknown = unknown or "%" .. digits .. letter
    return ""
  end)
  if unknown then
    return misused("brunt.date has no '" .. unknown .. "'; it has %Y %m %d %H %M %S %3f and the others of C's strftime", form)
  end
  return date("!" .. plain, seconds)
end
