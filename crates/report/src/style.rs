//! How a view looks: the choices of who asked for it, and colour.

use std::fmt::Display;

use anstyle::{AnsiColor, Style as Ansi};

use crate::ascii;

/// What can be chosen about a view's looks; its figures are the same whatever is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// ANSI colours, in the text and the live view. Without them not one escape sequence is written.
    pub colour: bool,
    /// The characters of text and live views.
    pub characters: Characters,
    /// How much the text says.
    pub detail: Detail,
    /// The `Latency Distribution` that wrk prints with `--latency`, in the wrk view.
    pub wrk_latency: bool,
}

/// The characters that a view may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Characters {
    /// Any.
    #[default]
    All,
    /// ASCII alone, for terminals and logs that have no others.
    Ascii,
}

impl Characters {
    /// ASCII where it is asked for.
    pub const fn ascii(is_asked: bool) -> Self {
        if is_asked { Self::Ascii } else { Self::All }
    }

    /// `text` in these characters, as wide as before.
    pub(crate) fn written(self, text: Vec<u8>) -> Vec<u8> {
        match self {
            Self::All => text,
            Self::Ascii => ascii::folded_bytes(text),
        }
    }
}

/// How much the text says; each says all that the one before it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Detail {
    /// What fits a screen.
    #[default]
    Brief,
    /// When the run began, too: for results that are read later.
    Dated,
    /// Everything there is to say.
    Verbose,
}

/// What a piece of text is, and so how it is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Plain,
    /// The name of a section, and figures that are looked for first.
    Strong,
    /// Labels and what explains figures.
    Faint,
    Good,
    /// What deserves a look, and lower bounds.
    Warning,
    Bad,
    /// Bars of charts.
    Chart,
}

impl Role {
    const fn ansi(self) -> Ansi {
        match self {
            Self::Plain => Ansi::new(),
            Self::Strong => Ansi::new().bold(),
            Self::Faint => Ansi::new().dimmed(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Warning => AnsiColor::Yellow.on_default(),
            Self::Bad => AnsiColor::Red.on_default().bold(),
            Self::Chart => AnsiColor::Cyan.on_default(),
        }
    }
}

impl Role {
    /// How it is drawn in a live view, whatever stood there before.
    pub(crate) fn style(self) -> ratatui_core::style::Style {
        ratatui_core::style::Style::reset().patch(self.ansi())
    }
}

/// Colours text, or leaves it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint(pub bool);

impl Paint {
    /// `text` in the colour of `role`.
    pub fn as_(self, role: Role, text: impl Display) -> String {
        if !self.0 || role == Role::Plain {
            return text.to_string();
        }
        let ansi = role.ansi();
        format!("{ansi}{text}{ansi:#}")
    }

    pub fn strong(self, text: impl Display) -> String {
        self.as_(Role::Strong, text)
    }

    pub fn faint(self, text: impl Display) -> String {
        self.as_(Role::Faint, text)
    }

    pub fn good(self, text: impl Display) -> String {
        self.as_(Role::Good, text)
    }

    pub fn warning(self, text: impl Display) -> String {
        self.as_(Role::Warning, text)
    }

    pub fn bad(self, text: impl Display) -> String {
        self.as_(Role::Bad, text)
    }

    pub fn chart(self, text: impl Display) -> String {
        self.as_(Role::Chart, text)
    }
}
