//! Options whose values are words: each a table of the values, their words, and what the help says of them.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// The parser of such an option.
pub fn words<T: Copy + Send + Sync + 'static>(
    table: &'static [(T, &'static str, &'static str)],
) -> impl TypedValueParser<Value = T> {
    let known = table.iter().map(|(_, word, help)| PossibleValue::new(*word).help(*help));
    PossibleValuesParser::new(known).try_map(|given| {
        let found = table.iter().find(|(_, word, _)| *word == given);
        found.map(|(value, ..)| *value).ok_or("there is no such word")
    })
}
