//! The script of a document.

/// The first and the last character of ranges, in ascending order, and what they are called here.
const RANGES: [(u32, u32, &str); 12] = [
    (0x41, 0x24f, "Latin"),
    (0x370, 0x3ff, "Greek"),
    (0x400, 0x52f, "Cyrillic"),
    (0x530, 0x58f, "Armenian"),
    (0x590, 0x5ff, "Hebrew"),
    (0x600, 0x77f, "Arabic"),
    (0x900, 0xdff, "scripts of India"),
    (0xe00, 0xe7f, "Thai"),
    (0x1e00, 0x1eff, "Latin"),
    (0x3040, 0x30ff, "Japanese"),
    (0x4e00, 0x9fff, "Chinese"),
    (0xac00, 0xd7a3, "Korean"),
];

/// The script of at least half of the letters in `text`. Kana beside ideographs make a text Japanese.
pub(crate) fn script(text: &str) -> &'static str {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    let mut all = 0;
    for name in text.chars().filter(|character| character.is_alphabetic()).map(of) {
        all += 1;
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    let count = |name| counts.iter().find(|(known, _)| *known == name).map_or(0, |&(_, count)| count);
    if 5 * count("Japanese") > count("Chinese") && 2 * (count("Japanese") + count("Chinese")) > all {
        return "Japanese";
    }
    counts.iter().find(|(_, count)| 2 * count > all).map_or("mixed", |&(name, _)| name)
}

fn of(character: char) -> &'static str {
    let number = u32::from(character);
    RANGES
        .iter()
        .find(|(first, last, _)| (*first..=*last).contains(&number))
        .map_or("others", |range| range.2)
}
