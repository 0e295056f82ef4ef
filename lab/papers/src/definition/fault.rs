//! Why a study's file is refused.

/// What is wrong with a study's file.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// It is no TOML, or has a field that a study has not.
    #[error("{file}: {error}")]
    Unreadable {
        /// The file.
        file: String,
        /// The parser's message, with line and column.
        error: Box<toml::de::Error>,
    },
    /// It was written for a later version.
    #[error(
        "{file}: it needs heaptoll {needed}, and this is {}: run it with that version or a later one",
        heaptoll_command::version::OURS
    )]
    Later {
        /// The file.
        file: String,
        /// The version it needs.
        needed: String,
    },
    /// Its content is impossible.
    #[error("{file}: {place}: {what}")]
    Wrong {
        /// The file.
        file: String,
        /// Where in it: `claim cost, test 2`.
        place: String,
        /// What is wrong, and what may stand there.
        what: String,
    },
}
