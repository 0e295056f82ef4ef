//! The value of `HEAPTOLL_QUARANTINE`: `size=2097152,check=on`.

use heaptoll_next::settings::{InvalidPair, each, number, size};

use crate::quarantine::volume::MOST;

/// What is allowed, as text.
pub const ALLOWED: &str = "it takes size=BYTES (1 or more; K, M, G are powers of 1024), check=on|off, \
                           abort=on|off, evict=all|random, \
                           realloc=delay|manager, seed=NUMBER, separated by commas";

/// How the quarantine works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The volume, bytes, beyond which blocks are given back: 1 for no delay.
    pub size: u64,
    /// Blocks are filled when they come in, and checked when they leave.
    pub check: bool,
    /// What is found wrong ends the process. Implies `check`.
    pub abort: bool,
    /// When the volume is too large, random blocks go rather than all.
    pub random: bool,
    /// `realloc` holds the old block back rather than leaving all to the manager.
    pub delay_realloc: bool,
    /// For the random ones.
    pub seed: u64,
}

impl Settings {
    /// No delay.
    pub const NONE: Settings =
        Settings { size: 1, check: false, abort: false, random: false, delay_realloc: true, seed: 0 };

    /// Reads a variable's value.
    ///
    /// # Errors
    /// The first pair that is not possible.
    pub fn read(text: &[u8]) -> Result<Settings, InvalidPair<'_>> {
        let mut settings = Settings::NONE;
        each(text, |name, value| match (name, value) {
            (b"size", value) => match size(value) {
                Some(bytes) if bytes > 0 => {
                    settings.size = (bytes as u64).min(MOST);
                    true
                }
                _ => false,
            },
            (b"check", b"on" | b"off") => {
                settings.check = value == b"on";
                true
            }
            (b"abort", b"on" | b"off") => {
                settings.abort = value == b"on";
                true
            }
            (b"evict", b"all" | b"random") => {
                settings.random = value == b"random";
                true
            }
            (b"realloc", b"delay" | b"manager") => {
                settings.delay_realloc = value == b"delay";
                true
            }
            (b"seed", value) => number(value).map(|seed| settings.seed = seed).is_some(),
            _ => false,
        })?;
        settings.check |= settings.abort;
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_set_is_as_without_delay() {
        assert_eq!(Settings::read(b""), Ok(Settings::NONE));
        let all = Settings::read(b"size=2M,check=on,evict=random,realloc=manager,seed=7");
        let expected = Settings {
            size: 2 << 20,
            check: true,
            random: true,
            delay_realloc: false,
            seed: 7,
            ..Settings::NONE
        };
        assert_eq!(all, Ok(expected));
        let aborts = Settings { size: 64, check: true, abort: true, ..Settings::NONE };
        assert_eq!(Settings::read(b"abort=on,size=64"), Ok(aborts));
        assert_eq!(Settings::read(b"abort=off"), Ok(Settings::NONE));
        assert_eq!(Settings::read(b"size=900000G").map(|settings| settings.size), Ok(MOST));
    }

    #[test]
    fn an_impossible_pair_is_an_error() {
        for text in [
            "size=0",
            "size=",
            "check=yes",
            "abort=1",
            "evict=some",
            "realloc=never",
            "seed=-1",
            "sizes=1",
            "check",
        ] {
            assert_eq!(Settings::read(text.as_bytes()), Err(InvalidPair { pair: text.as_bytes() }), "{text}");
        }
    }
}
