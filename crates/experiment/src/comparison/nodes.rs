//! The ratios of each node of an experiment that was measured on several; [`crate::nodes`] computes them.

use heaptoll_statistics::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::figure::Metric;

/// One stack's ratio to the baseline on one node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeRatio {
    /// The node.
    pub node: String,
    /// The stack.
    pub stack: String,
    /// Of what: `cpu` or `peak_rss`.
    pub metric: Metric,
    /// The mean ratio there, with an interval by Student's t; all intervals of nodes of a table hold together. `None`
    /// with fewer than two pairs.
    pub ratio: Option<Interval>,
    /// It over the ratio on all other nodes. Where its interval excludes 1, the node disagrees. `None` with fewer than
    /// two pairs here or there.
    pub over_others: Option<Interval>,
}
