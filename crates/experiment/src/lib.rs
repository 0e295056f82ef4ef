//! Experiments: plan one, execute its cells, measure them, store rows, compare them.

pub mod cell;
pub mod columns;
mod company;
pub mod compare;
pub mod comparison;
mod cpu_limit;
pub mod disturbance;
mod documented;
pub mod exact;
pub mod experiment;
pub mod forecast;
pub mod interrupt;
pub mod launch;
pub mod lockstep;
pub mod lower_bound;
pub mod machine;
pub mod manager;
pub mod named;
pub mod observation;
pub mod own_cost;
pub mod places;
pub mod plan;
pub mod precision;
pub mod reported;
pub mod runner;
pub mod sampler;
pub mod seconds;
pub mod serve;
pub mod side;
pub mod slow;
pub mod stack;
pub mod store;
#[cfg(test)]
mod testing;
mod verdict;
pub mod words;
pub mod working_copy;
