//! HTML in which no text from elsewhere can become markup: markup is always part of the program.

use std::fmt::Write as _;

/// A piece of HTML.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Html(String);

impl Html {
    /// Adds markup.
    pub fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Adds text, or an attribute's value between double quotes.
    pub fn text(&mut self, text: &str) -> &mut Self {
        for c in text.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                // HTML cannot represent it, and it shows nothing.
                '\0' => self.0.push('\u{fffd}'),
                c => self.0.push(c),
            }
        }
        self
    }

    /// Adds a number.
    pub fn number(&mut self, n: impl Into<i64>) -> &mut Self {
        self.0.push_str(&n.into().to_string());
        self
    }

    /// Adds a place in a drawing, to a tenth.
    pub fn place(&mut self, at: f64) -> &mut Self {
        let tenths = if at.is_finite() { (at * 10.0).round() } else { 0.0 };
        let _ = write!(self.0, "{}", tenths / 10.0);
        self
    }

    /// Adds another piece.
    pub fn html(&mut self, piece: &Self) -> &mut Self {
        self.0.push_str(&piece.0);
        self
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

/// A query (WHATWG URL, application/x-www-form-urlencoded), without empty values.
pub(crate) fn query(pairs: &[(&str, &str)]) -> String {
    let given = pairs.iter().filter(|(_, value)| !value.is_empty());
    let pairs: Vec<_> = given.map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    format!("?{}", pairs.join("&"))
}

fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'*' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
        b' ' => "+".to_owned(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        let mut html = Html::default();
        html.raw("<a title=\"").text("\"'><script>&\0").raw("\">").number(-7).place(f64::NAN).raw(" ").place(14.46);
        assert_eq!(html.into_string(), "<a title=\"&quot;&#39;&gt;&lt;script&gt;&amp;\u{fffd}\">-70 14.5");
    }

    #[test]
    fn queries_leave_nothing_open() {
        assert_eq!(query(&[("a", "x y&z=ü"), ("b", ""), ("c", "-")]), "?a=x+y%26z%3D%C3%BC&c=-");
    }
}
