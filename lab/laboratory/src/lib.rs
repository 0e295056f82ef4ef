//! What the laboratory's commands measure, decide and show: the experiments of the papers, an oracle of what is still used,
//! collectors on traces with pointers, programs and managers of others, and one experiment on many machines. A folder a
//! command.

pub mod added_managers;
pub mod artifact;
mod axis;
pub mod cluster;
mod collecting;
pub mod comparative;
pub mod conservatism;
pub mod delay;
pub mod frequency;
pub mod java;
mod layered;
pub mod minheap;
pub mod oracle;
pub mod originals;
pub mod proximity;
pub mod published;
pub mod reclamation;
pub mod replay_graph;
pub mod sealed;
pub mod tailor;
