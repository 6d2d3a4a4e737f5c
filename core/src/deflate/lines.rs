//! Finds the ends of lines in decompressed data.
//!
//! memchr finds the last byte of the separator; the bytes before it are then compared. Linear in the length
//! of the line, for a separator of constant length.

/// The length of the first line of `text`, including the `separator` that ends it; `None` if there is no
/// separator in `text` or the separator is empty.
pub fn end_of_line(text: &[u8], separator: &[u8]) -> Option<usize> {
    let (&last, before) = separator.split_last()?;
    if before.is_empty() {
        return memchr::memchr(last, text).map(|at| at + 1);
    }
    // Searching for the last byte of the separator: setting up a substring search would cost more than most
    // lines are long.
    let ends = memchr::memchr_iter(last, text.get(before.len()..)?);
    ends.map(|at| at + before.len()).find(|&at| text[at - before.len()..at] == *before).map(|at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::end_of_line;

    #[test]
    fn a_line_ends_behind_the_first_separator() {
        let ends = |text: &str, separator: &str| end_of_line(text.as_bytes(), separator.as_bytes());
        assert_eq!(ends("one\ntwo\n", "\n"), Some(4));
        assert_eq!(ends("one\ntwo\r\n", "\r\n"), Some(9));
        assert_eq!(ends("\n\r\n", "\r\n"), Some(3));
        assert_eq!(ends("aaab", "aab"), Some(4));
        assert_eq!(ends("one\n\ntwo", "\n\n"), Some(5));
        for (text, separator) in [("one", "\n"), ("", "\n"), ("a", "ab"), ("b", "ab"), ("one\n", "")] {
            assert_eq!(ends(text, separator), None, "{text:?} {separator:?}");
        }
    }

    #[test]
    fn it_is_where_a_plain_search_finds_it() {
        let text: Vec<u8> = (0..2000u32).map(|n| b"ab\n"[(n.wrapping_mul(n) >> 3) as usize % 3]).collect();
        for separator in [&b"\n"[..], b"a\n", b"bb", b"a\nb", b"\n\n\n"] {
            for from in 0..text.len() {
                let plain = text[from..].windows(separator.len()).position(|window| window == separator);
                assert_eq!(end_of_line(&text[from..], separator), plain.map(|at| at + separator.len()));
            }
        }
    }
}
