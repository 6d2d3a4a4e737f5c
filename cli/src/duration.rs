//! Durations as arguments: `30s`, `1.5m`, `500ms`.

use std::time::Duration;

/// The units, the longest names first: `ms` also ends in `s`.
const UNITS: [(&str, f64); 6] =
    [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

/// Reads a duration: a number and a unit, or seconds without one.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let (number, seconds) = UNITS
        .iter()
        .find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, *seconds)))
        .unwrap_or((text, 1.0));
    let number: Option<f64> = number.trim().parse().ok();
    let duration = number.and_then(|number| Duration::try_from_secs_f64(number * seconds).ok());
    duration.ok_or_else(|| "it is not a duration such as 30s, 1.5m or 500ms".to_owned())
}

/// Reads a duration that is longer than none.
pub(crate) fn parse_positive(text: &str) -> Result<Duration, String> {
    let duration = parse(text)?;
    if duration.is_zero() { Err("it must be more than 0".to_owned()) } else { Ok(duration) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_number_and_a_unit() {
        for (text, expected) in [
            ("30", Duration::from_secs(30)),
            ("30s", Duration::from_secs(30)),
            ("1.5m", Duration::from_secs(90)),
            ("2 h", Duration::from_secs(7_200)),
            ("500ms", Duration::from_millis(500)),
            ("7us", Duration::from_micros(7)),
            ("0", Duration::ZERO),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
        for text in ["", "s", "-1s", "1d", "NaN", "1e300h", "1 2s"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(parse_positive("1ns"), Ok(Duration::from_nanos(1)));
        assert_eq!(parse_positive("0s"), Err("it must be more than 0".to_owned()));
    }
}
