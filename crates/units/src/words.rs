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

/// `1st`, `2nd`, `11th`.
pub fn ordinal(number: u64) -> String {
    let end = match (number % 10, number % 100 / 10) {
        (_, 1) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{}{end}", grouped(number.into()))
}

/// Names joined for a sentence: `a, b and c`.
pub fn and_list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// The first `most` names, joined for a sentence with the number of the others: `a, b and 3 more`.
pub fn first_few(names: impl ExactSizeIterator<Item = String>, most: usize) -> String {
    let more = names.len().saturating_sub(most);
    let more = (more > 0).then(|| format!("{more} more"));
    and_list(&names.take(most).chain(more).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_counts_read_as_sentences() {
        assert_eq!(and_list(&["a".into(), "b".into(), "c".into()]), "a, b and c");
        assert_eq!((and_list(&[]), and_list(&["a".into()])), (String::new(), "a".into()));
        let few = |most| first_few(["a", "b", "c"].map(String::from).into_iter(), most);
        assert_eq!((few(2), few(3)), ("a, b and 1 more".into(), "a, b and c".into()));
        assert_eq!((plural(1, "program"), plural(3, "program")), ("1 program".into(), "3 programs".into()));
        assert_eq!(
            [1, 2, 3, 4, 11, 12, 22, 113].map(ordinal).join(" "),
            "1st 2nd 3rd 4th 11th 12th 22nd 113th"
        );
        assert_eq!((objects(1), objects(20_000)), ("1 object".into(), "20\u{202f}000 objects".into()));
    }
}
