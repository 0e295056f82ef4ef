//! The laboratory: plan an experiment, execute its cells, measure them, store rows, compare them.

pub mod compare;
pub mod comparison;
pub mod exact;
pub mod experiment;
pub mod interrupt;
pub mod launch;
pub mod lockstep;
pub mod lower_bound;
pub mod machine;
pub mod manager;
pub mod observation;
pub mod own_cost;
pub mod places;
pub mod plan;
pub mod precision;
pub mod runner;
pub mod sampler;
pub mod serve;
pub mod side;
pub mod stack;
pub mod statistics;
pub mod store;
#[cfg(test)]
mod testing;
pub mod told;
mod verdict;
pub mod words;
