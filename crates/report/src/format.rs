//! How people ask for a format: by its name, or by the extension of a file.

use std::path::Path;

/// How one format is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// The extension that tells it, without the dot; `None` if no file name does.
    pub(crate) extension: Option<&'static str>,
}

/// An unknown format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// A name that no format has.
    #[error("expected one of the formats {known}, got '{got}'")]
    Name {
        /// The known ones.
        known: String,
        /// The text in its place.
        got: String,
    },
    /// A file name that does not tell the format.
    #[error("expected a file name that ends in {known}, which tells the format, got '{got}'")]
    Extension {
        /// The extensions that do.
        known: String,
        /// The text in its place.
        got: String,
    },
}

/// Gives a format, which has `ALL` and `asked`, its names.
macro_rules! named_formats {
    ($format:ty) => {
        impl $format {
            /// Its name on the command line.
            pub const fn name(self) -> &'static str {
                self.asked().name
            }

            /// The format for a file of this name, by its extension.
            ///
            /// # Errors
            /// When the extension, in upper or lower case, is none of [`Self::extensions`].
            pub fn of_path(path: &std::path::Path) -> Result<Self, $crate::FormatError> {
                $crate::format::of_path(&Self::ALL, Self::asked, path)
            }

            /// The extensions that tell a format: `.txt, .json, … or .html`.
            pub fn extensions() -> String {
                $crate::format::extensions(&Self::ALL, Self::asked)
            }
        }

        impl std::str::FromStr for $format {
            type Err = $crate::FormatError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $crate::format::named(&Self::ALL, Self::asked, text)
            }
        }
    };
}
pub(crate) use named_formats;

/// The format of this name.
pub(crate) fn named<F: Copy>(all: &[F], asked: fn(F) -> Asked, name: &str) -> Result<F, FormatError> {
    all.iter().copied().find(|format| asked(*format).name == name).ok_or_else(|| FormatError::Name {
        known: listed(all.iter().map(|format| asked(*format).name.to_owned()).collect(), "and"),
        got: name.to_owned(),
    })
}

/// The format that the name of this file tells, in upper or lower case.
pub(crate) fn of_path<F: Copy>(all: &[F], asked: fn(F) -> Asked, path: &Path) -> Result<F, FormatError> {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    let told = |format: &F| extension.is_some() && extension.as_deref() == asked(*format).extension;
    all.iter().copied().find(told).ok_or_else(|| FormatError::Extension {
        known: extensions(all, asked),
        got: path.to_string_lossy().into_owned(),
    })
}

/// The extensions, with the name of the format where the extension does not abbreviate it: `.txt, .xml (junit) or .html`.
pub(crate) fn extensions<F: Copy>(all: &[F], asked: fn(F) -> Asked) -> String {
    let one = |format: &F| {
        let Asked { name, extension } = asked(*format);
        let extension = extension?;
        let mut letters = name.chars();
        let abbreviates = extension.chars().all(|letter| letters.any(|of_name| of_name == letter));
        Some(if abbreviates { format!(".{extension}") } else { format!(".{extension} ({name})") })
    };
    listed(all.iter().filter_map(one).collect(), "or")
}

/// Such as `a, b and c`.
fn listed(mut words: Vec<String>, last: &str) -> String {
    let Some(end) = words.pop() else { return String::new() };
    if words.is_empty() { end } else { format!("{} {last} {end}", words.join(", ")) }
}
