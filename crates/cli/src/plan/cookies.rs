//! `-b`: cookies as `name=value`, or a file of them, as curl has it (Netscape's format).

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};
use brunt_plan::content::without_mark;
use brunt_plan::secret::escaped;
use brunt_plan::target::Target;

use crate::files;

/// The Cookie field for requests to `target`; `None` without cookies.
pub fn field(given: &[String], target: &Target, has_lines: bool) -> Result<Option<String>> {
    let mut all = Vec::new();
    for text in given {
        // A reference to the environment may be a whole field.
        if text.contains('=') || text.starts_with('@') {
            all.push(text.clone());
            continue;
        }
        if !Path::new(text).is_file() {
            bail!(
                "-b: expected a cookie (name=value) or a file of cookies, and neither is it one nor is there such a file"
            );
        }
        if has_lines {
            bail!(
                "-b with a file: its cookies are for the hosts that it names, and --url-lines may name others: give -b name=value"
            );
        }
        let content = files::read(Path::new(text))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let file = String::from_utf8_lossy(without_mark(&content)).into_owned();
        match cookies_of(&file, target, now) {
            Ok(cookies) if cookies.is_empty() => bail!("-b {text}: none of its cookies is for {}", target.url()),
            Ok(cookies) => all.extend(cookies),
            Err(line) => bail!(
                "-b {text}, line {line}: expected a cookie in Netscape's format: domain, subdomains, path, secure, expiry, name and value, with tabs \
                 between them"
            ),
        }
    }
    Ok((!all.is_empty()).then(|| format!("Cookie: {}", all.join("; "))))
}

/// The cookies of a file that go to `target` at `now`, in seconds since 1970. The error is the number of the line that is none.
fn cookies_of(file: &str, target: &Target, now: u64) -> Result<Vec<String>, usize> {
    let mut cookies = Vec::new();
    for (line, number) in file.lines().zip(1..) {
        let line = line.strip_prefix("#HttpOnly_").unwrap_or(line);
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let fields: Vec<&str> = line.split('\t').collect();
        let [domain, subdomains, path, secure, expiry, name, value] = fields[..] else { return Err(number) };
        let Ok(expiry) = expiry.trim().parse::<u64>() else { return Err(number) };
        let domain = domain.trim_start_matches('.').to_ascii_lowercase();
        let is_below = subdomains.eq_ignore_ascii_case("true")
            && target.host.strip_suffix(domain.as_str()).is_some_and(|before| before.ends_with('.'));
        let is_secure = secure.eq_ignore_ascii_case("true");
        let holds = (target.host == domain || is_below)
            && is_within(&target.path, path)
            && (!is_secure || target.scheme == "https")
            && (expiry == 0 || expiry > now);
        if holds {
            cookies.push(escaped(&format!("{name}={value}")));
        }
    }
    Ok(cookies)
}

/// Whether a cookie of this path goes with a request to `target` (RFC 6265, section 5.1.4).
fn is_within(target: &str, path: &str) -> bool {
    let target = target.split('?').next().unwrap_or(target);
    let Some(rest) = target.strip_prefix(path) else { return false };
    rest.is_empty() || path.ends_with('/') || rest.starts_with('/')
}

#[cfg(test)]
mod tests {
    use brunt_plan::target::Url;

    use super::*;

    #[test]
    fn a_file_has_cookies_for_its_hosts() {
        let file = "# Netscape HTTP Cookie File\n\n.shop.test\tTRUE\t/\tFALSE\t0\tsid\t@a=b\r\n\
                    #HttpOnly_shop.test\tFALSE\t/cart\tFALSE\t2000\tcart\t7\n\
                    shop.test\tFALSE\t/\tTRUE\t0\tsafe\t1\nother.test\tTRUE\t/\tFALSE\t0\tno\t1\n";
        let cookies = |url: &str, now| cookies_of(file, &Url::parse(url).unwrap().target, now).unwrap();
        assert_eq!(cookies("http://shop.test/", 1000), ["sid=@a=b"]);
        assert_eq!(cookies("http://eu.shop.test/cart", 1000), ["sid=@a=b"]);
        assert_eq!(cookies("https://shop.test/cart/1?x", 1000), ["sid=@a=b", "cart=7", "safe=1"]);
        assert_eq!(cookies("http://shop.test/cart", 3000), ["sid=@a=b"], "one has expired");
        assert_eq!(cookies("http://shop.test/carts", 1000), ["sid=@a=b"]);
        assert!(cookies("http://notshop.test/", 1000).is_empty());
        let broken =
            cookies_of("# a\nshop.test FALSE / FALSE 0 sid abc\n", &Url::parse("http://shop.test").unwrap().target, 0);
        assert_eq!(broken, Err(2));
    }
}
