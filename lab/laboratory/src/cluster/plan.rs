//! The plan file: an experiment that was described and proved on one machine, the files and machines that it needs, and
//! the shards that it is cut into. docs/reference/plan-format.md has every field.

use std::collections::BTreeMap;
use std::path::Path;

use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::shards::{Part, short};
use heaptoll_report::{ReportError, files};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::digests::FileDigest;
use super::error::ClusterError;
use super::format::{FORMAT, VERSION};
use super::machine_class::MachineClass;
use crate::sealed::{self, Sealed, Unusable};
use heaptoll_gate::sharded::PlannedGate;

/// A plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u64,
    /// Version of heaptoll that made it.
    pub heaptoll: String,
    /// SHA-256 of the plan with this field empty, hexadecimal: two plans with one identity are one plan.
    pub identity: String,
    /// What is measured; no rows.
    pub experiment: Experiment,
    /// Variables of the environment that managers read, as they were set; a node has the same.
    pub environment: BTreeMap<String, String>,
    /// The catalog's entries among its programs, whose inputs a node can generate.
    pub catalog: Option<CatalogEntries>,
    /// The gate that decides over its rows, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<PlannedGate>,
    /// The files that take part.
    pub files: Vec<FileDigest>,
    /// The classes of machines, each of which measures the whole experiment.
    pub classes: Vec<MachineClass>,
    /// The shards, by number.
    pub shards: Vec<PlannedShard>,
}

/// Entries of the catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CatalogEntries {
    /// Their names.
    pub names: Vec<String>,
    /// Size of their inputs, as `--size` names it.
    pub size: String,
    /// A folder with further entries.
    pub folder: Option<String>,
}

/// A shard before it is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedShard {
    /// Its cells.
    #[serde(flatten)]
    pub part: Part,
    /// How long it will take, by the runs that were made for the plan, s.
    pub estimated_s: f64,
}

impl Sealed for Plan {
    const FORMAT: &'static str = FORMAT;
    const VERSION: u64 = VERSION;

    fn identity(&mut self) -> &mut String {
        &mut self.identity
    }
}

impl Plan {
    /// The plan with its identity.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    pub fn sealed(self) -> Result<Plan, ReportError> {
        sealed::seal(self).map_err(not_written)
    }

    /// Reads a plan of this version, whole and as it was written.
    ///
    /// # Errors
    /// It cannot be read, is no plan, of another version, or changed.
    pub fn read(path: &Path) -> Result<Plan, ClusterError> {
        let text = std::fs::read_to_string(path)
            .map_err(|cause| ClusterError::Read { path: path.to_path_buf(), cause })?;
        Plan::parse(&text, path)
    }

    fn parse(text: &str, path: &Path) -> Result<Plan, ClusterError> {
        let path = path.to_path_buf();
        sealed::read(text).map_err(|unusable| match unusable {
            Unusable::Other(why) | Unusable::Shape(why) => ClusterError::NoPlan { path, why },
            Unusable::OtherVersion { found, written_by } => {
                ClusterError::OtherVersion { path, found, written_by }
            }
            Unusable::Changed => ClusterError::Changed { path },
        })
    }

    /// Writes the plan, whole or not at all.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), ReportError> {
        let text = serde_json::to_string_pretty(self).map_err(not_written)?;
        files::write_atomically(path, |out| {
            let whole = out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n"));
            whole.map_err(|source| ReportError::Stream { form: "plan", source })
        })
    }

    /// A shard by its number.
    ///
    /// # Errors
    /// There is none.
    pub fn shard(&self, number: u32) -> Result<&PlannedShard, ClusterError> {
        let none = ClusterError::NoShard { number, of: self.shards.len() as u32 };
        self.shards.get(number as usize).ok_or(none)
    }

    /// The class of a shard; `None` in no plan that heaptoll wrote.
    pub fn class(&self, name: &str) -> Option<&MachineClass> {
        self.classes.iter().find(|class| class.name == name)
    }

    /// What file names and jobs have of the identity.
    pub fn short_identity(&self) -> &str {
        short(&self.identity)
    }

    /// The name of a shard's file, by which it sorts with the others.
    pub fn file_name(&self, number: u32) -> String {
        format!("{}-{number:05}.db", self.short_identity())
    }
}

fn not_written(error: serde_json::Error) -> ReportError {
    ReportError::Encode { form: "plan", detail: error.to_string() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, any, prop_assert, proptest};

    use super::*;
    use heaptoll_experiment::testing::programs::experiment;

    fn plan() -> Plan {
        let experiment = experiment(&["prog"], &["glibc".into(), "other".into()], 3);
        let part = Part { program: "prog".into(), repetitions: 3, ..Part::default() };
        let plan = Plan {
            format: FORMAT.into(),
            version: VERSION,
            heaptoll: "0".into(),
            identity: String::new(),
            experiment,
            environment: BTreeMap::new(),
            catalog: None,
            gate: None,
            files: vec![],
            classes: vec![MachineClass { name: "a".into(), ..MachineClass::default() }],
            shards: vec![PlannedShard { part, estimated_s: 0.1 + 0.2 }],
        };
        plan.sealed().expect("it is JSON")
    }

    fn parse(text: &str) -> Result<Plan, ClusterError> {
        Plan::parse(text, Path::new("exp.plan"))
    }

    #[test]
    fn a_plan_is_read_as_it_was_written_and_its_layout_does_not_count() {
        let plan = plan();
        for text in [serde_json::to_string(&plan), serde_json::to_string_pretty(&plan)] {
            assert_eq!(parse(&text.expect("it is JSON")).expect("it is read"), plan);
        }
    }

    #[test]
    fn another_version_another_file_and_a_changed_plan_are_distinguished() {
        let text = serde_json::to_string(&plan()).expect("it is JSON");
        let newer = parse(&text.replace("\"version\":1,", "\"version\":2,"));
        assert!(matches!(newer, Err(ClusterError::OtherVersion { found: 2, .. })), "{newer:?}");
        let changed = parse(&text.replace("\"repetitions\":3", "\"repetitions\":4"));
        assert!(matches!(changed, Err(ClusterError::Changed { .. })), "{changed:?}");
        for none in ["", "{}", "[1]", "{\"format\":\"x\",\"version\":1}"] {
            assert!(matches!(parse(none), Err(ClusterError::NoPlan { .. })), "{none}");
        }
    }

    #[test]
    fn shards_are_found_by_number() {
        let plan = plan();
        assert_eq!(plan.shard(0).expect("there").part.repetitions, 3);
        assert!(matches!(plan.shard(1), Err(ClusterError::NoShard { number: 1, of: 1 })));
        assert!(plan.file_name(7).ends_with("-00007.db"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_damaged_plan_is_refused_and_never_taken_for_another(at in any::<proptest::sample::Index>(), byte: u8) {
            let plan = plan();
            let mut bytes = serde_json::to_vec(&plan).expect("it is JSON");
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(read) = parse(&String::from_utf8_lossy(&bytes)) {
                prop_assert!(read == plan, "byte {at} became {byte}");
            }
        }
    }
}
