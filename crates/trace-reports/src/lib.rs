//! Reports about one trace: what it allocates, for how long, what it loses, and what bounds any manager of it. One folder a
//! report.

pub mod bound;
pub mod conservatism;
pub mod leaks;
pub mod lifetimes;
pub mod stat;
pub mod tailor;
