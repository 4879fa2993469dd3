//! The header fields of an answer that was kept.

/// Names and values of the header fields in `head`.
pub(super) fn fields_of(head: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    lines_of(head).filter_map(|line| {
        let colon = memchr::memchr(b':', line)?;
        Some((line.get(..colon)?, line.get(colon + 1..)?.trim_ascii()))
    })
}

/// Whether `head` has a field of this name, in lower case.
pub(super) fn has_field(head: &[u8], name: &[u8]) -> bool {
    let first = name.first().copied().unwrap_or(0);
    lines_of(head).any(|line| {
        // Most lines differ in their first letter.
        line.first().is_some_and(|letter| letter.to_ascii_lowercase() == first)
            && line.get(name.len()) == Some(&b':')
            && line.get(..name.len()).is_some_and(|known| known.eq_ignore_ascii_case(name))
    })
}

/// The lines behind the first one.
fn lines_of(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut ends = memchr::memchr_iter(b'\n', head);
    let mut began = ends.next().map_or(head.len(), |end| end + 1);
    ends.chain([head.len()]).map(move |end| {
        let line = head.get(began..end).unwrap_or(&[]);
        began = end + 1;
        line
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name() {
        let head = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nServer:  x \nno colon\r\nSET-COOKIE:c\r\n\r\n";
        let fields: Vec<_> = fields_of(head).collect();
        let expected: [(&[u8], &[u8]); 3] = [(b"Set-Cookie", b"a=b"), (b"Server", b"x"), (b"SET-COOKIE", b"c")];
        assert_eq!(fields, expected);
        let names: [&[u8]; 5] = [b"set-cookie", b"server", b"set-cooki", b"no colon", b"http/1.1 200 ok"];
        assert_eq!(names.map(|name| has_field(head, name)), [true, true, false, false, false]);
        for head in [&b""[..], b"HTTP/1.1 200 OK", b"HTTP/1.1 200 OK\r\n\r\n"] {
            assert!(fields_of(head).next().is_none() && !has_field(head, b"server"));
        }
    }
}
