//! Certificates and keys (RFC 7468), cut out of their files: nothing else in the files enters a plan.

use std::path::Path;

use anyhow::{Result, bail};
use brunt_plan::secret::Template;

use crate::files;

/// The certificates in the file. A key in the same file is left out.
pub fn certificates(path: &Path) -> Result<String> {
    let text = text(path)?;
    let blocks: Vec<_> = blocks(&text).filter(|block| block.label == "CERTIFICATE").map(|block| block.text).collect();
    if blocks.is_empty() {
        bail!("{}: expected certificates in PEM (-----BEGIN CERTIFICATE-----), found none", path.display());
    }
    Ok(blocks.join("\n") + "\n")
}

/// The private key in the file, or `@NAME` for one in the environment.
pub fn key(file_or_name: &str) -> Result<Template> {
    if file_or_name.starts_with('@') {
        return Ok(Template::secret(file_or_name));
    }
    let text = text(Path::new(file_or_name))?;
    let Some(key) = blocks(&text).find(|block| block.label.ends_with("PRIVATE KEY")) else {
        bail!("{file_or_name}: expected a private key in PEM (-----BEGIN PRIVATE KEY-----), found none");
    };
    if key.text.contains("ENCRYPTED") {
        bail!("{file_or_name}: the key is encrypted; decrypt it first (openssl pkey -in {file_or_name})");
    }
    Ok(Template::secret(key.text))
}

/// Whether the file, which has certificates, holds a private key, too.
pub fn has_key(path: &Path) -> Result<bool> {
    Ok(blocks(&text(path)?).any(|block| block.label.ends_with("PRIVATE KEY")))
}

/// The text of a file. What stands around the blocks may be in any encoding; they are ASCII.
fn text(path: &Path) -> Result<String> {
    Ok(String::from_utf8_lossy(&files::read(path)?).into_owned())
}

struct Block<'a> {
    label: &'a str,
    /// From its first dash to its last.
    text: &'a str,
}

fn blocks(text: &str) -> impl Iterator<Item = Block<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let from = rest.get(rest.find("-----BEGIN ")?..)?;
        let label = from.get("-----BEGIN ".len()..)?.split("-----").next()?;
        let closing = format!("-----END {label}-----");
        let end = from.find(&closing)? + closing.len();
        rest = from.get(end..)?;
        Some(Block { label, text: from.get(..end)? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_cut_out_of_what_stands_around_them() {
        let text = "subject: x\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\nissuer @ y\n\
                    -----BEGIN EC PRIVATE KEY-----\nBBBB\n-----END EC PRIVATE KEY-----\n-----BEGIN X-----\nnever ends";
        let found: Vec<_> = blocks(text).map(|block| (block.label, block.text.lines().nth(1).unwrap())).collect();
        assert_eq!(found, [("CERTIFICATE", "AAAA"), ("EC PRIVATE KEY", "BBBB")]);
        assert_eq!(blocks("-----BEGIN -----END").count(), 0);
    }
}
