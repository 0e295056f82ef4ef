//! Notes which manager is used where no manager has exactly the given name: Debian's object for one that is not built
//! here, the newest version for a name without one.

use heaptoll_experiment::manager::{self, Manager};
use heaptoll_experiment::stack;

use heaptoll_command::context::Messages;

/// Prints a note for each of these words that resolves to a manager of another name.
pub fn note<'a>(known: &[Manager], words: impl IntoIterator<Item = &'a String>, messages: &dyn Messages) {
    let mut noted = Vec::new();
    for word in words {
        let rest = stack::layers(word).map_or(word.as_str(), |(_, rest)| rest);
        let name = rest.split(',').next().unwrap_or(rest);
        if let Some(version) = manager::version_for(known, name).filter(|_| !noted.contains(&name)) {
            noted.push(name);
            messages.note(&format!("{name} is {} here", version.name));
            continue;
        }
        let Some(stand_in) = manager::stand_in(known, name).filter(|_| !noted.contains(&name)) else {
            continue;
        };
        noted.push(name);
        messages.note(&format!(
            "{name} is not built here: using {}, {} (`make build` builds all managers)",
            stand_in.name, stand_in.about
        ));
    }
}
