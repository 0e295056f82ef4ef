//! Options that take one of a few words: each stands for a value of the library's.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A word, what it stands for, and its help.
pub type Word<T> = (&'static str, T, &'static str);

/// The parser of an option that takes one of these words.
pub fn one_of<T>(words: &'static [Word<T>]) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let possible = words.iter().map(|(word, _, help)| PossibleValue::new(*word).help(*help));
    PossibleValuesParser::new(possible).try_map(|given| {
        let found = words.iter().find(|(word, ..)| *word == given);
        found.map(|(_, value, _)| *value).ok_or("not one of the words")
    })
}
