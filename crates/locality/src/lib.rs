//! The cost of references, from their addresses alone.
//!
//! [`distance`] yields the misses of fully associative LRU caches of every size at once (Mattson et al. 1970),
//! [`sampled`] the same from a part of the lines (SHARDS), [`forest`] those of set-associative caches, [`pages`] page
//! faults and TLB misses; [`ids`] numbers lines and pages for them, [`split`] and [`misses`] are the figures that they
//! yield, and [`simulation`] runs all of them over one stream. These do no input or output.
//!
//! [`machine`] and [`hierarchy`] are one machine's caches level by level, [`over_time`] working sets over the run;
//! [`image`] applies all of this to one process, [`placement`] separates misses by their cause, and [`study`] compares
//! managers.

pub mod distance;
pub mod forest;
pub mod hierarchy;
pub mod ids;
pub mod image;
pub mod machine;
pub mod machine_only;
pub mod misses;
pub mod over_time;
pub mod pages;
pub mod placement;
pub mod sampled;
pub mod simulation;
pub mod split;
pub mod study;
