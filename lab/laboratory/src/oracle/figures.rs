//! The figures, as in the JSON.

use std::path::Path;

use heaptoll_experiment::experiment::ProgramInfo;
use heaptoll_oracle::{Live, OracleFile, Unreachable};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was recorded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OracleFigures {
    /// Whether every program had its turn.
    pub complete: bool,
    /// The programs that could be recorded.
    pub programs: Vec<Program>,
}

/// One program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// Its name.
    pub program: String,
    /// Its command.
    pub command: Vec<String>,
    /// The file; null where a check failed, and it was removed.
    pub file: Option<String>,
    /// Allocations in the sequence.
    pub allocations: u64,
    /// Bytes allocated.
    pub allocated_bytes: u64,
    /// Allocations that are a `realloc` of an object.
    pub resized: u64,
    /// Objects that the program never frees.
    pub never_freed: u64,
    /// Requested bytes alive if objects are freed at their last use.
    pub live_last_use: Live,
    /// Requested bytes alive as the program frees.
    pub live_free: Live,
    /// Requested bytes alive if nothing is freed.
    pub live_never: Live,
    /// When objects can be reached no more, compared with the program's own frees; null where it was not recorded.
    pub unreachable: Option<Unreachable>,
    /// Whether native runs make the recorded allocations.
    pub sequence: Sequence,
    /// Whether early frees are safe; null where it was not tried.
    pub proof: Option<Proof>,
}

/// Whether native runs make the recorded allocations.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sequence {
    /// Native runs that were compared.
    pub runs: u32,
    /// The first difference, and what kind it is; null where there is none.
    pub differs: Option<String>,
}

/// Whether no object is touched after its last recorded use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// `pages`: each block on pages of its own, inaccessible when it is freed; `poison`: overwritten when it is freed;
    /// `none`: not possible.
    pub how: String,
    /// What was touched, or how the run differs; null where nothing was.
    pub fails: Option<String>,
}

impl Program {
    /// Of a recording and its checks.
    pub fn of(
        program: &ProgramInfo,
        recorded: &OracleFile,
        sequence: Sequence,
        proof: Option<Proof>,
    ) -> Program {
        let about = &recorded.about;
        let [live_last_use, live_free, live_never] = about.live;
        Program {
            program: program.name.clone(),
            command: program.command.clone(),
            file: None,
            allocations: recorded.allocations,
            allocated_bytes: about.allocated_bytes,
            resized: about.resized,
            never_freed: about.never_freed,
            live_last_use,
            live_free,
            live_never,
            unreachable: about.unreachable,
            sequence,
            proof,
        }
    }

    /// With the name of its file, where it has one.
    pub fn named(self, file: &Path) -> Program {
        let kept = self.is_good().then(|| file.display().to_string());
        Program { file: kept, ..self }
    }

    /// Whether the recording can be followed.
    pub fn is_good(&self) -> bool {
        self.sequence.differs.is_none() && self.proof.as_ref().is_none_or(|proof| proof.fails.is_none())
    }
}
