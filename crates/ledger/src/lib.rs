//! Where the memory of a process is: one sum that closes against its resident set.
