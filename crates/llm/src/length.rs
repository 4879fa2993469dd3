//! How many tokens: a number, or a distribution of numbers.

use std::fmt;
use std::str::FromStr;

use brunt_plan::random::Random;
use serde::{Deserialize, Serialize};

/// The most tokens of a prompt or an answer.
pub const MOST_TOKENS: f64 = 2_000_000.0;

/// A distribution of numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// Always the same.
    Fixed(f64),
    /// Normal, by mean and standard deviation.
    Normal(f64, f64),
    /// The logarithm is normal; by mean and standard deviation of the numbers themselves.
    LogNormal(f64, f64),
    /// Equally often each, from the first to the second.
    Uniform(f64, f64),
}

/// Makes a distribution of two numbers.
pub type Make = fn(f64, f64) -> Distribution;

/// The names of distributions.
const NAMES: [(&str, Make); 3] =
    [("normal", Distribution::Normal), ("lognormal", Distribution::LogNormal), ("uniform", Distribution::Uniform)];

impl Distribution {
    /// The distribution with this name, by its two numbers.
    pub fn named(name: &str) -> Option<Make> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, make)| *make)
    }

    /// A number at random; it may be below zero.
    pub fn draw(self, random: &mut Random) -> f64 {
        match self {
            Self::Fixed(number) => number,
            Self::Normal(mean, deviation) => mean + deviation * random.normal(),
            Self::LogNormal(mean, deviation) => {
                // Mean m and deviation s of the numbers: σ² = ln(1 + s²/m²), µ = ln m − σ²/2.
                let variance = (deviation / mean).powi(2).ln_1p();
                (mean.ln() - variance / 2.0 + variance.sqrt() * random.normal()).exp()
            }
            Self::Uniform(least, most) => least + (most - least) * random.unit(),
        }
    }

    /// Whether its numbers make sense together.
    pub fn is_possible(self) -> bool {
        match self {
            Self::Fixed(_) | Self::Normal(..) => true,
            Self::LogNormal(mean, _) => mean > 0.0,
            Self::Uniform(least, most) => least <= most,
        }
    }

    /// Its mean.
    pub fn mean(self) -> f64 {
        match self {
            Self::Fixed(mean) | Self::Normal(mean, _) | Self::LogNormal(mean, _) => mean,
            Self::Uniform(least, most) => f64::midpoint(least, most),
        }
    }

    /// Writes it with numbers written so.
    ///
    /// # Errors
    /// Those of the formatter.
    pub fn write(self, f: &mut fmt::Formatter<'_>, number: impl Fn(f64) -> String) -> fmt::Result {
        match self {
            Self::Fixed(fixed) => f.write_str(&number(fixed)),
            Self::Normal(mean, deviation) => write!(f, "normal:{},{}", number(mean), number(deviation)),
            Self::LogNormal(mean, deviation) => write!(f, "lognormal:{},{}", number(mean), number(deviation)),
            Self::Uniform(least, most) => write!(f, "uniform:{},{}", number(least), number(most)),
        }
    }
}

/// How many tokens prompts, or answers, have; or turns, conversations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Length(Distribution);

impl Length {
    /// The same for all.
    pub const fn fixed(tokens: f64) -> Self {
        Self(Distribution::Fixed(tokens))
    }

    /// A length at random.
    pub fn draw(self, random: &mut Random) -> u32 {
        let drawn = match self.0 {
            // Equally often each whole number.
            Distribution::Uniform(least, most) => Distribution::Uniform(least, most + 1.0).draw(random).floor(),
            spread => spread.draw(random),
        };
        drawn.round().clamp(1.0, MOST_TOKENS) as u32
    }

    /// Its mean, in tokens.
    pub fn mean(self) -> f64 {
        self.0.mean()
    }
}

impl FromStr for Length {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "expected a whole number from 1 to {MOST_TOKENS}, or normal:512,64, lognormal:512,64 (mean and deviation) or \
                 uniform:100,900, not '{text}'"
            )
        };
        let number = |text: &str| {
            let number: Option<f64> = text.trim().parse().ok();
            number.filter(|number| (0.0..=MOST_TOKENS).contains(number)).ok_or_else(expected)
        };
        let positive = |number: f64| if number >= 1.0 { Ok(number) } else { Err(expected()) };
        let is_whole = |distribution: Distribution| match distribution {
            Distribution::Fixed(number) => number.fract() == 0.0,
            Distribution::Uniform(least, most) => least.fract() == 0.0 && most.fract() == 0.0,
            Distribution::Normal(..) | Distribution::LogNormal(..) => true,
        };
        let whole = |spread: Distribution| Some(Self(spread)).filter(|_| is_whole(spread)).ok_or_else(expected);
        let Some((name, numbers)) = text.split_once(':') else {
            return whole(Distribution::Fixed(positive(number(text)?)?));
        };
        let make = Distribution::named(name.trim()).ok_or_else(expected)?;
        let (first, second) = numbers.split_once(',').ok_or_else(expected)?;
        let spread = make(positive(number(first)?)?, number(second)?);
        if spread.is_possible() { whole(spread) } else { Err(expected()) }
    }
}

impl TryFrom<String> for Length {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Length> for String {
    fn from(length: Length) -> Self {
        length.to_string()
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(f, |number| number.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_written_as_they_are_read() {
        for text in ["512", "normal:512,64", "lognormal:300,200", "uniform:100,900"] {
            assert_eq!(text.parse::<Length>().unwrap().to_string(), text);
        }
        for wrong in [
            "",
            "0",
            "-1",
            "x",
            "normal:512",
            "normal:0,3",
            "uniform:9,3",
            "gamma:1,2",
            "3000000",
            "NaN",
            "2.5",
            "uniform:1.5,3",
        ] {
            let problem = wrong.parse::<Length>().unwrap_err();
            assert!(problem.ends_with(&format!("not '{wrong}'")), "{problem}");
        }
    }

    #[test]
    fn lengths_have_their_mean_and_deviation() {
        for (text, mean, deviation) in [
            ("512", 512.0, 0.0),
            ("normal:512,64", 512.0, 64.0),
            ("lognormal:300,200", 300.0, 200.0),
            ("uniform:100,900", 500.0, 231.2),
        ] {
            let (length, mut random) = (text.parse::<Length>().unwrap(), Random::new(7, 0));
            let drawn: Vec<f64> = (0..100_000).map(|_| f64::from(length.draw(&mut random))).collect();
            let seen = drawn.iter().sum::<f64>() / drawn.len() as f64;
            let spread = (drawn.iter().map(|n| (n - seen).powi(2)).sum::<f64>() / drawn.len() as f64).sqrt();
            assert!(
                (seen - mean).abs() < 0.02 * mean && (spread - deviation).abs() < 0.03 * mean,
                "{text}: {seen} {spread}"
            );
            assert!(length.mean().total_cmp(&mean).is_eq());
        }
    }
}
