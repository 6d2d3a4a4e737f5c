//! Which patterns mean the same to our engine as to Oniguruma, which Hugging Face's tokenizers use.
//!
//! The classes of Unicode that models use (`\p{…}`, `\s`, `\d`) and the rest of the syntax agree. What does
//! not, or may not, is refused: anchors (Oniguruma's are those of lines), `\w` and `\b` (other characters),
//! POSIX brackets, operations on classes, and matching without regard to case, in which Oniguruma takes `ß` for `ss`.
//! The one group of this kind that models have is known to agree, and so is Kimi's pattern, which has operations.

use super::unsupported;
use crate::tokens::Error;
use crate::tokens::split::kimi;

const CONTRACTIONS: &str = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";

/// Escapes with one meaning: classes and controls. Punctuation always stands for itself.
const ESCAPES: &str = "pPsSdDrntfv";

/// Refuses a pattern that may mean something else to Oniguruma.
pub(super) fn check(pattern: &str) -> Result<(), Error> {
    if pattern == kimi::PATTERN {
        return Ok(());
    }
    let refuse = |what: &str| Err(unsupported(format!("the pattern {pattern:?}, for its {what}")));
    let rest = pattern.replace(CONTRACTIONS, "");
    if ["(?i", "(?x", "(?m", "(?s", "(?<", "(?P", "(?a", "(?W"].iter().any(|flag| rest.contains(flag)) {
        return refuse("groups with flags or names, or what looks behind");
    }
    let mut depth = 0_usize;
    let mut before = ' ';
    let mut characters = rest.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escape) if ESCAPES.contains(escape) || escape.is_ascii_punctuation() => {}
                Some(escape) => return refuse(&format!("\\{escape}")),
                None => {}
            },
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ':' if depth > 1 && before == '[' => return refuse("POSIX brackets"),
            '&' | '~' | '-' if depth > 0 && before == character => return refuse("operations on classes"),
            '^' | '$' if depth == 0 => return refuse("anchors"),
            _ => {}
        }
        before = character;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::split::{gpt2, llama3, o200k, tekken};

    #[test]
    fn what_models_use_is_the_same() {
        let deepseek =
            r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"##;
        let known = [
            gpt2::PLAIN,
            llama3::PATTERN,
            llama3::QWEN,
            llama3::QWEN35,
            o200k::PATTERN,
            tekken::PATTERN,
            kimi::PATTERN,
        ];
        for pattern in known.into_iter().chain([deepseek, r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+"]) {
            assert_eq!(check(pattern), Ok(()), "{pattern}");
        }
    }

    #[test]
    fn what_differs_is_refused() {
        for pattern in
            [r"\w+", r"a\b", "^a", "a$", "[[:alpha:]]", "(?i:ss)", "(?m)a", r"[a&&b]", r"(?<=a)b", r"\h"]
        {
            assert!(check(pattern).is_err(), "{pattern}");
        }
    }
}
