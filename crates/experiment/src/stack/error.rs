//! Why a stack is refused.

use thiserror::Error;

/// A stack that means nothing, or nothing that could be measured.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StackError {
    /// Layers without a manager.
    #[error(
        "`{0}` names a layer and no manager after it: write {0}/glibc, or another manager (`heaptoll managers`)"
    )]
    NoManager(String),
    /// `quarantine` without a size, or `sweep=2M`.
    #[error("layer `{layer}`: {reason}")]
    Value {
        /// The layer.
        layer: String,
        /// What is wrong and what is right.
        reason: String,
    },
    /// A layer's file that cannot be read.
    #[error("{place}: {reason}; run `make build`, or install heaptoll again")]
    Damaged {
        /// The file, and the line in it.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No such option.
    #[error("`{owner}` has no option `{option}`; {known}")]
    Option {
        /// Layer or manager.
        owner: String,
        /// As given.
        option: String,
        /// Those there are, in words.
        known: String,
    },
    /// An option set to what it cannot be.
    #[error("`{owner}`: {option}={value} is not possible: {allowed}")]
    Setting {
        /// Layer or manager.
        owner: String,
        /// The option.
        option: String,
        /// What it was set to.
        value: String,
        /// What it may be.
        allowed: String,
    },
    /// Parts that do not go together.
    #[error("`{stack}` makes no sense: {reason}")]
    Nonsense {
        /// As written.
        stack: String,
        /// Why.
        reason: String,
    },
}
