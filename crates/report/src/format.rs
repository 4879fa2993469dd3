//! The formats of a result, and their names.

use std::path::Path;
use std::str::FromStr;

/// A format of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// For people.
    Text,
    /// As wrk prints it, for scripts that parse that.
    Wrk,
    /// Everything, for programs.
    Json,
    /// The run second by second, for spreadsheets and plots.
    Csv,
    /// Test cases, for CI.
    Junit,
    /// A page with charts, for a browser.
    Html,
}

/// An unknown format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// A name that no format has.
    #[error("expected one of the formats {known}, got '{got}'")]
    Name {
        /// The known ones.
        known: &'static str,
        /// The text in its place.
        got: String,
    },
    /// A file name that does not tell the format.
    #[error("expected a file name that ends in {known}, which tells the format, got '{got}'")]
    Extension {
        /// The extensions that do.
        known: &'static str,
        /// The text in its place.
        got: String,
    },
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 6] = [Self::Text, Self::Wrk, Self::Json, Self::Csv, Self::Junit, Self::Html];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Wrk => "wrk",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Junit => "junit",
            Self::Html => "html",
        }
    }

    /// The format for a file of this name, by its extension.
    ///
    /// # Errors
    /// When the extension, in upper or lower case, is not one of `.txt`, `.json`, `.csv`, `.xml` and `.html`.
    pub fn of_path(path: &Path) -> Result<Self, FormatError> {
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
        match extension.as_deref() {
            Some("txt") => Ok(Self::Text),
            Some("json") => Ok(Self::Json),
            Some("csv") => Ok(Self::Csv),
            Some("xml") => Ok(Self::Junit),
            Some("html") => Ok(Self::Html),
            _ => {
                let known = ".txt, .json, .csv, .xml (JUnit) or .html";
                Err(FormatError::Extension { known, got: path.to_string_lossy().into_owned() })
            }
        }
    }
}

impl FromStr for Format {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|format| format.name() == text);
        known.ok_or_else(|| FormatError::Name { known: "text, wrk, json, csv, junit and html", got: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_found_by_its_name() {
        for format in Format::ALL {
            assert_eq!(format.name().parse(), Ok(format));
        }
        assert_eq!(
            "pdf".parse::<Format>().unwrap_err().to_string(),
            "expected one of the formats text, wrk, json, csv, junit and html, got 'pdf'"
        );
    }

    #[test]
    fn a_file_name_tells_the_format() {
        for (name, format) in [
            ("a.txt", Format::Text),
            ("b/c.JSON", Format::Json),
            ("a.b.csv", Format::Csv),
            ("r.xml", Format::Junit),
            ("p.html", Format::Html),
        ] {
            assert_eq!(Format::of_path(Path::new(name)), Ok(format));
        }
        for name in ["out", "out.pdf", ".json", ""] {
            let error = Format::of_path(Path::new(name)).unwrap_err().to_string();
            assert!(
                error.contains(".txt, .json, .csv, .xml (JUnit) or .html") && error.ends_with(&format!("got '{name}'")),
                "{error}"
            );
        }
    }
}
