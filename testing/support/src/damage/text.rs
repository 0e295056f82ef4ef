//! Texts of a grammar, TOML or JSON: what is changed are words, so that most of the damage gets past the grammar.

use super::dice::Dice;

/// Words that are legal and seldom expected.
const WORDS: [&str; 20] = [
    "0",
    "-1",
    "1e400",
    "nan",
    "18446744073709551615",
    "-9223372036854775808",
    "0.1",
    "\"\"",
    "true",
    "[]",
    "{}",
    "null",
    "\"a/../../b\"",
    "\"{input}\"",
    "\"{nothing}\"",
    "\"\\u0000\"",
    "[[1]]",
    "\"((((a*)*)*)*)\"",
    "\"é\u{202e}\"",
    "1979-05-27",
];

/// A text with one to four changes.
pub fn text(dice: &mut Dice, from: &str) -> String {
    let mut text = from.to_owned();
    for _ in 0..=dice.below(4) {
        text = change(dice, &text);
    }
    text
}

fn change(dice: &mut Dice, text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let (one, other) = (dice.below(lines.len()), dice.below(lines.len()));
    let line_with = |at: usize, new: String| {
        let changed =
            lines.iter().enumerate().map(|(line, old)| if line == at { new.clone() } else { (*old).into() });
        changed.collect::<Vec<String>>().join("\n")
    };
    let Some(line) = lines.get(one) else { return WORDS[dice.below(WORDS.len())].to_owned() };
    let (word, deep) = (WORDS[dice.below(WORDS.len())], "[".repeat(1 << dice.below(18)));
    match dice.below(8) {
        0 => line_with(one, String::new()),
        1 => line_with(one, lines[other].to_owned()),
        2 => line_with(one, format!("{line}\n{}", lines[other])),
        3 => line_with(one, replaced(dice, line, word)),
        4 => line_with(one, replaced(dice, line, &deep)),
        5 => line_with(one, line.chars().take(dice.below(line.len())).collect()),
        6 => lines[..one].join("\n"),
        _ => String::from_utf8_lossy(&super::bytes::bytes(dice, text.as_bytes())).into_owned(),
    }
}

/// A value, or a word, of a line replaced.
fn replaced(dice: &mut Dice, line: &str, by: &str) -> String {
    if let Some((name, _)) = line.split_once('=').filter(|_| dice.below(3) > 0) {
        return format!("{name}= {by}");
    }
    if let Some((name, _)) = line.split_once(':').filter(|_| dice.below(3) > 0) {
        let comma = if line.trim_end().ends_with(',') { "," } else { "" };
        return format!("{name}: {by}{comma}");
    }
    let words: Vec<&str> = line.split(' ').collect();
    let at = dice.below(words.len());
    let words = words.iter().enumerate().map(|(place, word)| if place == at { by } else { word });
    words.collect::<Vec<&str>>().join(" ")
}
