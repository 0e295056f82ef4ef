//! What references cost, from their addresses alone.
//!
//! [`distance`] gives the misses of fully associative LRU caches of every size at once (Mattson et al. 1970), [`sampled`]
//! the same from a part of the lines (SHARDS), [`forest`] those of set-associative caches, [`pages`] page faults and TLB
//! misses; [`ids`] numbers the lines and pages they speak of, and [`simulation`] runs all of them over one stream. Nothing
//! there reads or writes anything.
//!
//! [`machine`] and [`hierarchy`] are one machine's caches level by level, [`over_time`] working sets over the run; [`image`]
//! hears all of this of one process, [`placement`] tells misses apart by their cause, and [`study`] sets managers side by
//! side.

pub mod distance;
pub mod forest;
pub mod hierarchy;
pub mod ids;
pub mod image;
pub mod machine;
pub mod machine_only;
pub mod over_time;
pub mod pages;
pub mod placement;
pub mod sampled;
pub mod simulation;
pub mod study;
