//! Which pages of static data are in memory: the recorder finds by them which variables are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::heap_ranges::is_loaded;
use crate::mapping::Mapping;
use crate::residency::{Run, Walk};

/// A variable of the program or of a library, in static data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StaticVariable {
    /// Its name in the source.
    pub name: String,
    /// The file that defines it.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// Of that, bytes in memory when the resident set was largest.
    pub resident: u64,
}

/// The pages of static data at one snapshot.
#[derive(Debug, Clone, Default)]
pub struct StaticData {
    /// Files with writable data, and where the first byte of each lies.
    pub files: Vec<(String, u64)>,
    pub(crate) runs: Vec<Run>,
}

impl StaticData {
    /// Files with writable data among these mappings, which are in order of address, but those of heaptoll's layers; no pages
    /// yet.
    pub(crate) fn of(mappings: &[Mapping]) -> StaticData {
        let mut files: Vec<(String, u64)> = Vec::new();
        let is_layers = |mapping: &Mapping| {
            mapping.name.rsplit('/').next().is_some_and(|file| file.starts_with("libheaptoll_"))
        };
        let is_data = |&number: &usize| {
            mappings[number].writable && is_loaded(mappings, number) && !is_layers(&mappings[number])
        };
        for mapping in (0..mappings.len()).filter(is_data).map(|number| &mappings[number]) {
            let first = mappings.iter().find(|other| other.name == mapping.name).unwrap_or(mapping);
            if files.last().is_none_or(|(name, _)| *name != mapping.name) {
                files.push((mapping.name.clone(), first.start));
            }
        }
        StaticData { files, runs: Vec::new() }
    }

    /// Bytes in memory of `start..end`.
    pub fn resident(&self, start: u64, end: u64) -> u64 {
        let from = self.runs.partition_point(|run| run.end <= start);
        Walk::new(&self.runs[from..]).measure(start, end).amount.resident
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::residency::State;

    #[test]
    fn files_with_writable_data_are_known_by_their_first_mapping() {
        let mapping = |start: u64, name: &str, writable: bool| Mapping {
            start,
            end: start + 0x1000,
            name: name.into(),
            writable,
            executable: !writable,
            ..Mapping::default()
        };
        let mappings = [
            mapping(0x1000, "/bin/p", false),
            mapping(0x3000, "/bin/p", true),
            mapping(0x4000, "", true),
            mapping(0x5000, "/lib/constant.so", false),
            mapping(0x6000, "/lib/l.so", false),
            mapping(0x7000, "/lib/l.so", true),
            mapping(0x8000, "/lib/l.so", true),
            // Before, a variable of the recording layer was named as the program's largest.
            mapping(0xa000, "/opt/heaptoll/layers/libheaptoll_record.so", true),
        ];
        let mut found = StaticData::of(&mappings);
        assert_eq!(found.files, [("/bin/p".to_owned(), 0x1000), ("/lib/l.so".to_owned(), 0x6000)]);
        let run = |start: u64, end: u64| Run { start, end, state: State::Resident };
        found.runs = vec![run(0x3000, 0x4000), run(0x7000, 0x9000)];
        assert_eq!((found.resident(0x3800, 0x7800), found.resident(0x8800, 0xa000)), (0x1000, 0x800));
        assert_eq!(found.resident(0x4000, 0x7000), 0);
    }
}
