//! A pointer that is incremented, and a free that does nothing: the least that an allocator can do, which Boehm
//! compares with real ones as "incr ptr / no free" (*Memory Allocation Myths and Half-Truths*). A bound from below for
//! the time of malloc, and from above for memory.
//!
//! - malloc rounds the request and a header word up to 16 bytes and moves the pointer by that.
//! - free does nothing. So neither double frees and foreign addresses nor what is live can be recognised: the census
//!   counts as live what was ever handed out.
//! - The region is extended by pages of 4 KiB, as many as the request needs.
//!
//! Boehm's allocator needs no header. `realloc` and `malloc_usable_size` do: they must know how much may be copied or
//! used. It costs one store in malloc and one word a block, the same as in kingsley and pow2; blocks begin at 8 mod 16,
//! so that alignment costs no second one. realloc extends the last block where it is, and leaves a block where it is
//! that shrinks.

mod heap;

pub use heap::Bump;
