//! `HEAPTOLL_SWEEP`: the layer's settings. The tool checks the same pairs (`heaptoll_experiment::stack`) before it sets the
//! variable; this is for users who preload by hand.

use heaptoll_next::settings::{self, InvalidPair};

/// The pairs that are possible, for the message about another.
pub const ALLOWED: &str = "write every=SIZE (1B or more), heap=SIZE (4K or more), reclaim=K (1 or more), \
                           free=ignore or free=honour, markers=N (1 to 64), sweep=eager or sweep=lazy, with commas \
                           between them";

/// How the layer works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// A collection after so many bytes were allocated; `None`: in proportion to what is live, or where there is a heap
    /// limit, when that is reached.
    pub every: Option<usize>,
    /// The most that pages with a live block may come to, bytes.
    pub heap: Option<usize>,
    /// N: every Nth collection reclaims what it found dead; the others only find it.
    pub reclaim: u64,
    /// The program's frees are carried out.
    pub honour: bool,
    /// Threads that mark.
    pub markers: Option<u32>,
    /// Dead blocks are given back a few at a time, by later calls.
    pub lazy: bool,
}

impl Settings {
    /// The defaults.
    pub const fn new() -> Settings {
        Settings { every: None, heap: None, reclaim: 1, honour: false, markers: None, lazy: false }
    }

    /// Reads the variable's value.
    ///
    /// # Errors
    /// The first pair that is not possible; one that is set twice is not either.
    pub fn read(text: &[u8]) -> Result<Settings, InvalidPair<'_>> {
        let mut read = Settings::new();
        let mut seen = [false; 6];
        settings::each(text, |name, value| {
            let known = [&b"every"[..], b"heap", b"reclaim", b"free", b"markers", b"sweep"];
            let Some(at) = known.iter().position(|&known| known == name) else { return false };
            if core::mem::replace(&mut seen[at], true) {
                return false;
            }
            let size = |least: usize| settings::size(value).filter(|&bytes| bytes >= least);
            let number = |most: u64| settings::number(value).filter(|number| (1..=most).contains(number));
            let choice = |no: &[u8], yes: &[u8]| (value == no || value == yes).then_some(value == yes);
            match at {
                0 => size(1).map(|bytes| read.every = Some(bytes)),
                1 => size(4096).map(|bytes| read.heap = Some(bytes)),
                2 => number(1 << 32).map(|number| read.reclaim = number),
                3 => choice(b"ignore", b"honour").map(|yes| read.honour = yes),
                4 => number(64).map(|number| read.markers = Some(number as u32)),
                _ => choice(b"eager", b"lazy").map(|yes| read.lazy = yes),
            }
            .is_some()
        })?;
        Ok(read)
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_value_is_the_default() {
        assert_eq!(Settings::read(b""), Ok(Settings::new()));
        assert_eq!(Settings::read(b","), Ok(Settings::new()));
    }

    #[test]
    fn each_pair_is_read() {
        let text = b"every=65536,heap=32M,reclaim=16,free=honour,markers=3,sweep=lazy";
        let all = Settings {
            every: Some(65536),
            heap: Some(32 << 20),
            reclaim: 16,
            honour: true,
            markers: Some(3),
            lazy: true,
        };
        assert_eq!(Settings::read(text), Ok(all));
        assert_eq!(Settings::read(b"every=1B"), Ok(Settings { every: Some(1), ..Settings::new() }));
        assert_eq!(Settings::read(b"free=ignore,sweep=eager"), Ok(Settings::new()));
    }

    #[test]
    fn an_impossible_pair_is_an_error() {
        for pair in [
            &b"every=0"[..],
            b"every=",
            b"every",
            b"every=x",
            b"heap=4095",
            b"reclaim=0",
            b"reclaim=4294967297",
            b"free=never",
            b"markers=0",
            b"markers=65",
            b"sweep=later",
            b"size=1",
        ] {
            assert_eq!(Settings::read(pair), Err(InvalidPair { pair }));
        }
        assert_eq!(Settings::read(b"every=1,every=2"), Err(InvalidPair { pair: b"every=2" }));
    }
}
