//! The variables that most of the static data is.

use std::path::Path;

use heaptoll_ledger::{StaticData, StaticVariable};
use heaptoll_symbols::demangled;

/// Variables that are named.
const MOST: usize = 5;

/// The variables with most bytes in memory of the files with static data; those of files that cannot be read, or have no
/// symbols, are missing.
pub fn largest(data: &StaticData) -> Vec<StaticVariable> {
    let mut all = Vec::new();
    for (file, start) in &data.files {
        let Ok(found) = heaptoll_elf::data(Path::new(file)) else { continue };
        // The file's first page was mapped at `start`.
        let difference = start.wrapping_sub(found.first & !(rustix::param::page_size() as u64 - 1));
        all.extend(found.variables.into_iter().filter_map(|variable| {
            let begin = variable.address.wrapping_add(difference);
            let resident = data.resident(begin, begin.saturating_add(variable.bytes));
            let (file, bytes) = (file.clone(), variable.bytes);
            (resident > 0).then_some(StaticVariable { name: variable.name, file, bytes, resident })
        }));
    }
    all.sort_by_key(|variable| std::cmp::Reverse(variable.resident));
    all.truncate(MOST);
    for variable in &mut all {
        variable.name = demangled(&variable.name);
    }
    all
}
