//! What became of a number, in words.

use serde::Serialize;

/// Which direction is an improvement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Less of it.
    Less,
    /// More of it.
    More,
    /// Neither direction is.
    Neither,
}

/// The smallest change that is called better or worse.
const NOTABLE: f64 = 0.05;

impl Better {
    /// Whether a change is notably for the better (`Some(true)`) or for the worse.
    pub(super) fn verdict(self, before: f64, after: f64) -> Option<bool> {
        let notable = is_notable(before, after);
        match self {
            Self::Less if notable => Some(after < before),
            Self::More if notable => Some(after > before),
            _ => None,
        }
    }

    /// A change in words, and whether it is for the better or for the worse.
    pub(super) fn change(self, before: f64, after: f64) -> String {
        let verdict = match self.verdict(before, after) {
            Some(true) => ", better",
            Some(false) => ", worse",
            None => "",
        };
        change(before, after) + verdict
    }
}

/// Whether numbers differ by more than chance.
pub(super) fn is_notable(before: f64, after: f64) -> bool {
    (after - before).abs() > NOTABLE * before.max(after)
}

/// A change in words. A factor says something between 1/100 and 100; beyond, the two numbers do.
fn change(before: f64, after: f64) -> String {
    let factor = after / before;
    match (before, after) {
        (before, after) if before == after => "the same".into(),
        (0.0, _) => "new".into(),
        (_, 0.0) => "gone".into(),
        (before, after) if !is_notable(before, after) => "about the same".into(),
        _ if factor > 100.0 => "over 100 times as much".into(),
        _ if factor >= 2.0 => format!("{} times as much", rounded(factor)),
        _ if factor > 1.0 => format!("{:.0}% more", (factor - 1.0) * 100.0),
        _ if factor > 0.5 => format!("{:.0}% less", (1.0 - factor) * 100.0),
        _ if factor >= 0.01 => format!("1/{} as much", rounded(1.0 / factor)),
        _ => "almost gone".into(),
    }
}

/// A factor of at least 2, in two digits.
fn rounded(factor: f64) -> String {
    let rounded = if factor < 9.95 { (factor * 10.0).round() / 10.0 } else { factor.round() };
    format!("{rounded}")
}
