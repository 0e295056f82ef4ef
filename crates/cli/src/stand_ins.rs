//! Says which of Debian's objects is taken where a manager that was named is not built here.

use heaptoll_lab::manager::{self, Manager};
use heaptoll_lab::stack;

use crate::terminal;

/// A note for each of these words whose manager Debian's object stands in for.
pub fn note<'a>(known: &[Manager], words: impl IntoIterator<Item = &'a String>) {
    let mut noted = Vec::new();
    for word in words {
        let rest = stack::layers(word).map_or(word.as_str(), |(_, rest)| rest);
        let name = rest.split(',').next().unwrap_or(rest);
        let Some(stand_in) = manager::stand_in(known, name).filter(|_| !noted.contains(&name)) else {
            continue;
        };
        noted.push(name);
        terminal::note(&format!(
            "{name} is not built here: taken is {}, {} (`make build` builds all that can be)",
            stand_in.name, stand_in.about
        ));
    }
}
