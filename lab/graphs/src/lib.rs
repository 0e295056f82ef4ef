//! What collectors that go by pointers keep of a program's heap, from a trace with pointers: [`conservatism`] of roots and
//! interior pointers, and from when on an object is [`unreachable`].

pub mod conservatism;
pub mod unreachable;
