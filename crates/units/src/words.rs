//! Counted nouns and lists, as sentences hold them.

use crate::count::grouped;

/// `1 row`, `2 rows`.
pub fn plural(number: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number as i128), if number == 1 { "" } else { "s" })
}

/// `1 object`, `2 objects`.
pub fn objects(value: u64) -> String {
    plural(value as usize, "object")
}

/// Names joined for a sentence: `a, b and c`.
pub fn and_list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_counts_read_as_sentences() {
        assert_eq!(and_list(&["a".into(), "b".into(), "c".into()]), "a, b and c");
        assert_eq!((and_list(&[]), and_list(&["a".into()])), (String::new(), "a".into()));
        assert_eq!((plural(1, "program"), plural(3, "program")), ("1 program".into(), "3 programs".into()));
        assert_eq!((objects(1), objects(20_000)), ("1 object".into(), "20\u{202f}000 objects".into()));
    }
}
