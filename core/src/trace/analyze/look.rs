//! How text for the terminal looks: its width, and its colours if it has any.

use anstyle::{AnsiColor, Style};

/// How text for the terminal looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// The greatest number of columns of a line. Words that are longer stay whole.
    pub width: usize,
    /// Whether headings are bold and weights are coloured, with the terminal's escape sequences.
    pub colored: bool,
}

impl Default for Look {
    /// 80 columns without colours.
    fn default() -> Self {
        Self { width: 80, colored: false }
    }
}

/// The style of headings.
pub(super) const TITLE: Style = Style::new().bold();
/// The style of what costs time.
pub(super) const BAD: Style = AnsiColor::Red.on_default().bold();
/// The style of what is well.
pub(super) const GOOD: Style = AnsiColor::Green.on_default().bold();
/// The style of what needs attention.
pub(super) const DOUBT: Style = AnsiColor::Yellow.on_default().bold();
/// The style of what stands in the background.
pub(super) const FAINT: Style = Style::new().dimmed();

impl Look {
    /// The text in a style, if there are colours.
    pub(super) fn paint(self, style: Style, text: &str) -> String {
        if self.colored { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// The text in lines that begin with `indent` blanks, except the first, before which something of that
    /// length stands.
    pub(super) fn hang(self, indent: usize, text: &str) -> String {
        let lines = wrap(text, self.width.saturating_sub(indent).max(NARROWEST));
        lines.join(&format!("\n{:indent$}", ""))
    }
}

/// The least number of columns that text is broken into.
const NARROWEST: usize = 24;

/// The text in lines of at most `width` characters, broken between words.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            lines.push(String::new());
            used = 0;
        }
        let line = lines.last_mut().expect("there is one from the start");
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += length;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words_only() {
        assert_eq!(wrap("", 10), [""]);
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a_long_word b", 4), ["a_long_word", "b"]);
        assert_eq!(wrap("é ü", 3), ["é ü"]);
    }

    #[test]
    fn a_hanging_text_is_indented() {
        let look = Look { width: 30, colored: false };
        assert_eq!(
            look.hang(4, "one two three four five six seven"),
            "one two three four five\n    six seven"
        );
    }

    #[test]
    fn colours_are_put_around_text_only_where_there_are_any() {
        assert_eq!(Look::default().paint(TITLE, "x"), "x");
        assert_eq!(Look { colored: true, ..Look::default() }.paint(TITLE, "x"), "\u{1b}[1mx\u{1b}[0m");
    }
}
