//! Formats numbers with units, and lists of names.

/// A duration in nanoseconds as text: three digits and a suitable unit.
pub fn duration(nanoseconds: u64) -> String {
    let ns = nanoseconds as f64;
    let (value, unit) = match ns {
        ..1e3 => return format!("{nanoseconds} ns"),
        ..999.5e3 => (ns / 1e3, "µs"),
        ..999.5e6 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.digits$} {unit}")
}

/// A share as text in percent: one digit after the point below ten.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0%".to_owned(),
        ..0.05 => "<0.1%".to_owned(),
        percent @ ..9.95 => format!("{percent:.1}%"),
        percent => format!("{percent:.0}%"),
    }
}

/// Up to three names, or two and the number of the others.
pub(in crate::trace) fn list(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    match names.as_slice() {
        [] => "no thread".into(),
        [one] => one.clone(),
        [a, b] => format!("{a} and {b}"),
        [a, b, c] => format!("{a}, {b} and {c}"),
        [a, b, rest @ ..] => format!("{a}, {b} and {} others", rest.len()),
    }
}

/// A size with a suitable unit.
pub fn size(bytes: u64) -> String {
    let b = bytes as f64;
    match b {
        ..1e3 => format!("{bytes} B"),
        ..1e6 => format!("{:.1} kB", b / 1e3),
        ..1e9 => format!("{:.1} MB", b / 1e6),
        _ => format!("{:.1} GB", b / 1e9),
    }
}

/// A text that begins with a capital letter.
pub(in crate::trace) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
