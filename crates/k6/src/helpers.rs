//! Functions of JavaScript that Lua lacks: the prelude of a moved script.

/// A function of the prelude. A later one may use an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Helper {
    /// Whether JavaScript takes a value for true.
    Truthy,
    /// Whether a value is `null` or `undefined`.
    Absent,
    /// `a || b`, where both are values without effects.
    Either,
    /// `{ ...a, ...b }`.
    Merged,
    Map,
    Filter,
    /// A part that was not moved.
    NotMoved,
}

impl Helper {
    /// The helpers that this one calls.
    pub(crate) fn needs(self) -> &'static [Helper] {
        match self {
            Self::Either | Self::Filter => &[Self::Truthy],
            _ => &[],
        }
    }

    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Truthy => {
                r#"-- What JavaScript takes for true: 0, NaN, "" and JSON's null are not.
local function truthy(value)
  return value and value ~= 0 and value ~= "" and value ~= brunt.null and value == value
end
"#
            }
            Self::Absent => {
                r"-- Whether a value is null or undefined.
local function absent(value)
  return value == nil or value == brunt.null
end
"
            }
            Self::Either => {
                r"local function either(value, other)
  if truthy(value) then return value end
  return other
end
"
            }
            Self::Merged => {
                r"-- One table of several: where two have a field, the later one's counts.
local function merged(...)
  local all = {}
  for place = 1, select('#', ...) do
    for name, value in pairs(select(place, ...) or {}) do
      all[name] = value
    end
  end
  return all
end
"
            }
            Self::Map => {
                r"local function map(list, f)
  local made = {}
  for place, value in ipairs(list) do
    made[place] = f(value, place - 1)
  end
  return made
end
"
            }
            Self::Filter => {
                r"local function filter(list, f)
  local kept = {}
  for place, value in ipairs(list) do
    if truthy(f(value, place - 1)) then
      kept[#kept + 1] = value
    end
  end
  return kept
end
"
            }
            Self::NotMoved => {
                r#"-- Stands where the script for k6 has something that was not moved: write it, and take this away.
local function not_moved(line, what)
  error(("line %d of the script for k6 was not moved: %s"):format(line, what), 0)
end
"#
            }
        }
    }
}
