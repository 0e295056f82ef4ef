//! Words that are made up but pronounceable, and distinct for distinct numbers.

const SYLLABLES: [&str; 64] = [
    "ba", "be", "bi", "bo", "da", "de", "di", "do", "fa", "fe", "fi", "fo", "ga", "ge", "gi", "go", "ha",
    "he", "hi", "ho", "ka", "ke", "ki", "ko", "la", "le", "li", "lo", "ma", "me", "mi", "mo", "na", "ne",
    "ni", "no", "pa", "pe", "pi", "po", "ra", "re", "ri", "ro", "sa", "se", "si", "so", "ta", "te", "ti",
    "to", "va", "ve", "vi", "vo", "wa", "we", "wi", "wo", "za", "ze", "zi", "zo",
];

/// The word of a number: frequent (small) numbers have short words, as in a language.
pub(crate) fn word(number: u64) -> String {
    let mut out = String::new();
    let mut rest = number;
    loop {
        out.push_str(SYLLABLES[(rest % 64) as usize]);
        rest /= 64;
        if rest == 0 {
            return out;
        }
        rest -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn words_are_distinct_and_grow_slowly() {
        let words: BTreeSet<String> = (0..10_000).map(word).collect();
        assert_eq!(words.len(), 10_000);
        assert!(words.iter().all(|word| word.len() <= 6));
        assert!(word(u64::MAX).len() <= 22);
    }
}
