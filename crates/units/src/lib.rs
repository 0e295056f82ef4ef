//! Quantities as people read and write them, a file each: one place decides how many digits a reader sees and what an
//! option may hold. [`text_table`] puts them side by side.

mod bytes;
mod count;
pub mod limits;
mod lists;
mod ratio;
mod share;
pub mod text_table;
mod time;
mod words;

pub use bytes::{
    KIB, MIB, about, bytes, kib, mib, mib_from_bytes, mib_from_kib, size, size_label, size_text, whole_bytes,
};
pub use count::{count, figure, number, rate, significant, small, tenths, three_digits};
pub use lists::{each_once, groups};
pub use ratio::{factor, ratio};
pub use share::{part, per_hundred, percent, percent_off, read_percent, rounded_percent, written_percent};
pub use time::{duration, milliseconds, seconds, time_ns, took};
pub use words::{and_list, first_few, objects, ordinal, plural};

/// What is printed where there is no figure.
pub const NONE: &str = "–";

#[cfg(test)]
mod tests;
