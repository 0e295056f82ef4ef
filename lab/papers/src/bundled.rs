//! The studies that are part of the program.

use super::check::apart;
use super::definition::{Fault, Study};

/// The studies' files, part of the program, in the order of the papers.
pub(super) const STUDIES: &[(&str, &str)] = &[
    ("studies/zorn1992.toml", include_str!("../../../studies/zorn1992.toml")),
    ("studies/detlefs1994.toml", include_str!("../../../studies/detlefs1994.toml")),
    ("studies/boehm-myths.toml", include_str!("../../../studies/boehm-myths.toml")),
    ("studies/sareen2022.toml", include_str!("../../../studies/sareen2022.toml")),
    ("studies/mimalloc2019.toml", include_str!("../../../studies/mimalloc2019.toml")),
    ("studies/reclamation.toml", include_str!("../../../studies/reclamation.toml")),
];

/// Every study, in the order of the papers.
pub fn all() -> Result<Vec<Study>, Fault> {
    let studies: Vec<Study> =
        STUDIES.iter().map(|(file, text)| Study::parse(text, file)).collect::<Result<_, _>>()?;
    apart(&studies, STUDIES)?;
    Ok(studies)
}
