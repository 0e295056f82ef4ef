//! Reports about one trace: what it allocates, for how long, what it loses, where its memory is, what bounds any manager
//! of it and what others do with it; and the trace in the formats of other tools. A folder a command.

pub mod bound;
pub mod export;
pub mod import;
pub mod leaks;
pub mod ledger;
pub mod lifetimes;
pub mod replay;
pub mod stat;
