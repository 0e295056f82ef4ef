//! An allocator made for one program from its trace, after CustoMalloc (Grunwald and Zorn 1993).
//!
//! [`profile`] sums up the sizes that the trace requests, [`plan`] decides which of them get a class and how memory is
//! taken, [`source`] writes the C source, [`compile`] makes the shared object. The algorithm is the C text in
//! `source/`, one file a part; what is learned are the tables in front of it.

pub mod compile;
pub mod error;
pub mod plan;
pub mod profile;
pub mod source;
