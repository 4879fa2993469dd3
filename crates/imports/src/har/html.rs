//! Reads as much of HTML as is needed to find the fields of forms and the titles of pages: tags with their attributes.

/// A tag with its attributes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) name: String,
    attributes: Vec<(String, String)>,
}

impl Tag {
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The tags of these names (in lower case) in a page, in their order, `most` at the most.
pub(crate) fn tags(page: &str, names: &[&str], most: usize) -> Vec<Tag> {
    let mut found = Vec::new();
    let mut rest = page;
    while let Some(begin) = rest.find('<') {
        rest = rest.get(begin + 1..).unwrap_or_default();
        let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let name = rest.get(..end).unwrap_or_default().to_ascii_lowercase();
        if names.contains(&name.as_str()) {
            let (attributes, after) = attributes(rest.get(end..).unwrap_or_default());
            found.push(Tag { name, attributes });
            rest = after;
        }
        if found.len() >= most {
            break;
        }
    }
    found
}

/// The title of a page.
pub(crate) fn title(page: &str) -> Option<String> {
    let begin = page.find("<title").or_else(|| page.find("<TITLE"))?;
    let (_, rest) = page.get(begin..)?.split_once('>')?;
    let (title, _) = rest.split_once('<')?;
    Some(unescaped(title.trim()))
}

/// The attributes up to the tag's end, and the text behind it.
fn attributes(text: &str) -> (Vec<(String, String)>, &str) {
    let mut all = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '/');
        let end = rest.find(|letter: char| letter.is_whitespace() || matches!(letter, '=' | '>' | '/' | '<'));
        let end = end.unwrap_or(rest.len());
        let name = rest.get(..end).unwrap_or_default().to_ascii_lowercase();
        rest = rest.get(end..).unwrap_or_default().trim_start();
        if let Some(value) = rest.strip_prefix('=') {
            let (value, after) = attribute_value(value.trim_start());
            all.push((name, unescaped(value)));
            rest = after;
        } else if !name.is_empty() {
            all.push((name, String::new()));
        } else {
            // The end of the tag or of the text, or broken HTML.
            return (all, rest.strip_prefix('>').unwrap_or(rest));
        }
        if all.len() > 100 {
            return (all, rest);
        }
    }
}

fn attribute_value(text: &str) -> (&str, &str) {
    for quote in ['"', '\''] {
        if let Some(text) = text.strip_prefix(quote) {
            return text.split_once(quote).unwrap_or((text, ""));
        }
    }
    text.split_at(text.find(|letter: char| letter.is_whitespace() || letter == '>').unwrap_or(text.len()))
}

/// An attribute's value with its character references replaced.
pub(crate) fn unescaped(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    let replaced = [
        ("&quot;", "\""),
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&#x27;", "'"),
        ("&#x2F;", "/"),
        ("&#43;", "+"),
        ("&#x2B;", "+"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&#61;", "="),
        ("&#x3D;", "="),
    ];
    let text = replaced.iter().fold(text.to_owned(), |text, (escape, letter)| text.replace(escape, letter));
    text.replace("&#38;", "&").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_found_in_whatever_is_there() {
        let page =
            "<p><INPUT type=hidden name='a' value=\"x&amp;y\" disabled/><meta name=csrf content=z><input<input name=b";
        let tags = tags(page, &["input", "meta"], 10);
        let shown: Vec<_> =
            tags.iter().map(|tag| (tag.name.as_str(), tag.attribute("name"), tag.attribute("value"))).collect();
        assert_eq!(
            shown,
            [
                ("input", Some("a"), Some("x&y")),
                ("meta", Some("csrf"), None),
                ("input", None, None),
                ("input", Some("b"), None)
            ]
        );
        assert_eq!(tags[0].attribute("disabled"), Some(""));
        assert_eq!(tags[1].attribute("content"), Some("z"));
    }
}
