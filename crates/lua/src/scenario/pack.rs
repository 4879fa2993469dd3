//! Numbers and texts as bytes, and back: `brunt.pack` and `brunt.unpack`, by the formats of Lua 5.3's `string.pack`
//! (<https://www.lua.org/manual/5.3/manual.html#6.4.2>), without alignment.

use std::borrow::Cow;

use brunt_protocol::scenario::Value;

/// The most bytes that are packed at once.
const MOST_BYTES: usize = 64 << 20;
/// The largest whole number that a number of Lua holds exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// One item of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Item {
    /// A whole number of this many bytes.
    Whole { bytes: usize, signed: bool },
    /// IEEE 754, single.
    Single,
    /// IEEE 754, double.
    Double,
    /// This many bytes.
    Fixed(usize),
    /// Bytes behind their length, which has this many bytes.
    Prefixed(usize),
    /// Bytes with a zero behind them.
    Terminated,
    /// A byte of zero, which has no value.
    Padding,
}

/// The items of a format, each with whether it is little-endian.
struct Items<'a> {
    format: &'a str,
    at: usize,
    little: bool,
}

impl<'a> Items<'a> {
    fn parse(format: &'a str) -> Self {
        Self { format, at: 0, little: cfg!(target_endian = "little") }
    }

    fn number(&mut self) -> Option<usize> {
        let rest = self.format.get(self.at..)?;
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        self.at += digits;
        // A number beyond all limits is as wrong as one beyond any of them.
        rest.get(..digits).filter(|digits| !digits.is_empty()).map(|digits| digits.parse().unwrap_or(usize::MAX))
    }

    fn size(&mut self, letter: char, default: usize) -> Result<usize, String> {
        match self.number().unwrap_or(default) {
            size @ 1..=8 => Ok(size),
            other => Err(format!("'{letter}{other}': a number has from 1 to 8 bytes")),
        }
    }

    /// The next item, if there is one.
    fn next(&mut self) -> Result<Option<(Item, bool)>, String> {
        loop {
            let Some(letter) = self.format.get(self.at..).and_then(|rest| rest.chars().next()) else { return Ok(None) };
            self.at += letter.len_utf8();
            let whole = |bytes, signed| Item::Whole { bytes, signed };
            let item = match letter {
                ' ' => continue,
                '<' => {
                    self.little = true;
                    continue;
                }
                '>' => {
                    self.little = false;
                    continue;
                }
                '=' => {
                    self.little = cfg!(target_endian = "little");
                    continue;
                }
                'b' | 'B' => whole(1, letter == 'b'),
                'h' | 'H' => whole(2, letter == 'h'),
                'l' | 'j' => whole(8, true),
                'L' | 'J' | 'T' => whole(8, false),
                'i' | 'I' => whole(self.size(letter, 4)?, letter == 'i'),
                'f' => Item::Single,
                'd' | 'n' => Item::Double,
                's' => Item::Prefixed(self.size(letter, 8)?),
                'z' => Item::Terminated,
                'x' => Item::Padding,
                'c' => match self.number() {
                    Some(length) if length <= MOST_BYTES => Item::Fixed(length),
                    _ => return Err("'c' needs how many bytes: c10".to_owned()),
                },
                other => {
                    let known = "b B h H i I l L j J T f d n s z x c < > =";
                    return Err(format!("'{other}' is not a format; there are {known}"));
                }
            };
            return Ok(Some((item, self.little)));
        }
    }
}

fn whole_bytes(value: &Value<'_>, place: usize, bytes: usize, signed: bool) -> Result<[u8; 8], String> {
    let number = value.as_number().ok_or_else(|| format!("value {place} must be a number, not {}", value.kind()))?;
    if number.fract() != 0.0 || number.abs() > EXACT {
        return Err(format!("value {place} must be a whole number up to 2^53, not {number}"));
    }
    let number = number as i64;
    let bits = bytes as u32 * 8;
    let fits = match signed {
        _ if bits == 64 => signed || number >= 0,
        true => (-(1_i64 << (bits - 1))..1_i64 << (bits - 1)).contains(&number),
        false => (0..1_i64 << bits).contains(&number),
    };
    if !fits {
        let kind = if signed { "signed" } else { "unsigned" };
        return Err(format!("value {place}: {number} does not fit {bytes} bytes, {kind}"));
    }
    Ok(number.to_le_bytes())
}

fn put(out: &mut Vec<u8>, little_endian: &[u8], little: bool) {
    if little {
        out.extend_from_slice(little_endian);
    } else {
        out.extend(little_endian.iter().rev());
    }
}

/// Packs values by a format.
///
/// # Errors
/// The value that does not fit, or the error in the format.
pub(super) fn pack(format: &str, values: &[Value<'_>]) -> Result<Vec<u8>, String> {
    let (mut items, mut out, mut place) = (Items::parse(format), Vec::new(), 0);
    while let Some((item, little)) = items.next()? {
        if item == Item::Padding {
            out.push(0);
            continue;
        }
        place += 1;
        let value =
            values.get(place - 1).ok_or_else(|| format!("the format has more items than the {} values", place - 1))?;
        let text = || value.as_bytes().ok_or_else(|| format!("value {place} must be a string, not {}", value.kind()));
        let number =
            || value.as_number().ok_or_else(|| format!("value {place} must be a number, not {}", value.kind()));
        match item {
            Item::Whole { bytes, signed } => {
                let whole = whole_bytes(value, place, bytes, signed)?;
                put(&mut out, whole.get(..bytes).unwrap_or_default(), little);
            }
            Item::Single => put(&mut out, &(number()? as f32).to_le_bytes(), little),
            Item::Double => put(&mut out, &number()?.to_le_bytes(), little),
            Item::Fixed(length) => {
                let text = text()?;
                if text.len() > length {
                    return Err(format!("value {place} has {} bytes, and there is room for {length}", text.len()));
                }
                out.extend_from_slice(text);
                out.resize(out.len() + length - text.len(), 0);
            }
            Item::Prefixed(bytes) => {
                let text = text()?;
                let length = whole_bytes(&Value::Number(text.len() as f64), place, bytes, false)?;
                put(&mut out, length.get(..bytes).unwrap_or_default(), little);
                out.extend_from_slice(text);
            }
            Item::Terminated => {
                let text = text()?;
                if text.contains(&0) {
                    return Err(format!("value {place} has a zero in it, which would end it"));
                }
                out.extend_from_slice(text);
                out.push(0);
            }
            Item::Padding => {}
        }
        if out.len() > MOST_BYTES {
            return Err(format!("more than {MOST_BYTES} bytes"));
        }
    }
    if place < values.len() {
        return Err(format!("there are {} values, and the format has {place} items", values.len()));
    }
    Ok(out)
}

fn whole(bytes: &[u8], little: bool, signed: bool) -> Result<f64, String> {
    let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
    let number = if little { bytes.iter().rev().fold(0, add) } else { bytes.iter().fold(0, add) };
    let unused = 64 - 8 * bytes.len() as u32;
    let exact = if signed {
        let number = (number << unused) as i64 >> unused;
        (number.unsigned_abs() as f64 <= EXACT && number.unsigned_abs() <= EXACT as u64).then_some(number as f64)
    } else {
        (number <= EXACT as u64).then_some(number as f64)
    };
    exact.ok_or_else(|| "a number beyond 2^53, which Lua cannot hold exactly: unpack it as c8".to_owned())
}

/// Unpacks the values in `bytes` by a format, from the byte with number `from` on (from 1). Returns them, and the
/// number of the byte behind them.
///
/// # Errors
/// The missing bytes, or the error in the format.
pub(super) fn unpack<'a>(format: &str, bytes: &'a [u8], from: usize) -> Result<(Vec<Value<'a>>, usize), String> {
    let (mut items, mut values) = (Items::parse(format), Vec::new());
    let mut source = Source { bytes, at: from.saturating_sub(1) };
    if source.at > bytes.len() {
        return Err(format!("there is no byte {from}: there are {}", bytes.len()));
    }
    while let Some((item, little)) = items.next()? {
        let ordered =
            |bytes: &[u8]| -> Vec<u8> { if little { bytes.to_vec() } else { bytes.iter().rev().copied().collect() } };
        let value = match item {
            Item::Whole { bytes, signed } => Value::Number(whole(source.take(bytes)?, little, signed)?),
            Item::Single => {
                let four = <[u8; 4]>::try_from(ordered(source.take(4)?)).unwrap_or_default();
                Value::Number(f64::from(f32::from_le_bytes(four)))
            }
            Item::Double => {
                let eight = <[u8; 8]>::try_from(ordered(source.take(8)?)).unwrap_or_default();
                Value::Number(f64::from_le_bytes(eight))
            }
            Item::Fixed(length) => Value::Text(Cow::Borrowed(source.take(length)?)),
            Item::Prefixed(bytes) => {
                let length = whole(source.take(bytes)?, little, false)?;
                Value::Text(Cow::Borrowed(source.take(length as usize)?))
            }
            Item::Terminated => Value::Text(Cow::Borrowed(source.until_zero()?)),
            Item::Padding => {
                source.take(1)?;
                continue;
            }
        };
        values.push(value);
    }
    Ok((values, source.at + 1))
}

/// Bytes, of which those before `at` are unpacked.
struct Source<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Source<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = rest.get(..length).ok_or_else(|| {
            format!("{length} bytes are expected from byte {} on, and {} are there", self.at + 1, rest.len())
        })?;
        self.at += length;
        Ok(taken)
    }

    fn until_zero(&mut self) -> Result<&'a [u8], String> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let length = rest.iter().position(|byte| *byte == 0);
        let text = self.take(length.ok_or("there is no zero that ends a text")?)?;
        self.at += 1;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(values: &[&[u8]]) -> Vec<Value<'static>> {
        values.iter().map(|value| Value::Text(Cow::Owned(value.to_vec()))).collect()
    }

    /// The results of Lua 5.3 for the same formats.
    #[test]
    fn formats_are_those_of_lua() {
        let numbers = [Value::Number(1.0), Value::Number(-2.0), Value::Number(770.0)];
        assert_eq!(pack(">Bi3<H", &numbers), Ok(b"\x01\xff\xff\xfe\x02\x03".to_vec()));
        assert_eq!(pack("<j", &[Value::Number(-1.0)]), Ok(vec![255; 8]));
        assert_eq!(pack(">s2zc4x", &texts(&[b"ab", b"c", b"d"])), Ok(b"\0\x02abc\0d\0\0\0\0".to_vec()));
        assert_eq!(pack("<d", &[Value::Number(1.0)]), Ok(b"\0\0\0\0\0\0\xf0\x3f".to_vec()));
        let (values, next) = unpack(">s2zc4x", b"\0\x02abc\0d\0\0\0\0!", 1).unwrap();
        assert_eq!((values, next), (texts(&[b"ab", b"c", b"d\0\0\0"]), 12));
        assert_eq!(unpack("<f", &1.5_f32.to_le_bytes(), 1), Ok((vec![Value::Number(1.5)], 5)));
        assert_eq!(unpack("b", b"\0\xff", 2), Ok((vec![Value::Number(-1.0)], 3)));
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let packed = |format, value| pack(format, &[value]).unwrap_err();
        assert_eq!(packed("B", Value::Number(256.0)), "value 1: 256 does not fit 1 bytes, unsigned");
        assert_eq!(packed("b", Value::Number(-129.0)), "value 1: -129 does not fit 1 bytes, signed");
        assert_eq!(packed("i4", Value::Number(0.5)), "value 1 must be a whole number up to 2^53, not 0.5");
        assert_eq!(packed("z", Value::text("a\0")), "value 1 has a zero in it, which would end it");
        assert!(packed("q", Value::Nil).contains("'q' is not a format"));
        assert!(packed("BB", Value::Number(1.0)).contains("more items than the 1 values"));
        assert!(packed("", Value::Number(1.0)).contains("there are 1 values"));
        assert!(packed("i9", Value::Number(1.0)).contains("from 1 to 8 bytes"));
        assert!(unpack("I4", b"abc", 1).unwrap_err().contains("4 bytes are expected from byte 1 on, and 3 are there"));
        assert!(unpack("J", &[255; 8], 1).unwrap_err().contains("beyond 2^53"));
        assert!(unpack("s4", b"\xff\xff\xff\xffa", 1).is_err());
        assert!(unpack("z", b"abc", 1).is_err() && unpack("B", b"", 3).is_err());
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_out_again(
            number in -(1_i64 << 53)..=1_i64 << 53, size in 7_usize..=8, text: Vec<u8>, big: bool,
        ) {
            let format = format!("{}i{size} s4 B", if big { '>' } else { '<' });
            let values = [Value::Number(number as f64), Value::Text(Cow::Owned(text)), Value::Number(7.0)];
            let bytes = pack(&format, &values).unwrap();
            prop_assert_eq!(unpack(&format, &bytes, 1), Ok((values.to_vec(), bytes.len() + 1)));
        }

        #[test]
        fn nothing_makes_it_panic(format in "[<>bBhilLjIfdnszxc0-9 ]{0,20}", bytes: Vec<u8>, from in 0_usize..20) {
            let _ = unpack(&format, &bytes, from);
        }
    }
}
