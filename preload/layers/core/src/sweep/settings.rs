//! The two layers that read all of a program's memory, and their settings, `HEAPTOLL_SWEEP` and `HEAPTOLL_GUARD`. The
//! tool checks the same pairs (`heaptoll_experiment::stack`) before it sets the variable; this is for users who preload
//! by hand.

use core::ffi::CStr;

use heaptoll_next::settings::{self, InvalidPair};

/// Percent of what a collection reads that may be allocated before the next, unless a setting gives a period: what
/// Tithe allows itself in mode `collect`.
pub const HEADROOM: usize = 48;

/// What differs between the layers.
#[derive(Debug)]
pub struct Layer {
    pub name: &'static str,
    /// It keeps what the program frees until no word leads to it. Otherwise it collects what is not reachable.
    pub guards: bool,
    pub variable: &'static CStr,
    /// The names that the variable's pairs may have.
    names: &'static [&'static [u8]],
    /// The pairs that are possible, for the message about another.
    pub allowed: &'static str,
    defaults: Settings,
}

/// The layer that collects.
pub const SWEEP: Layer = Layer {
    name: "sweep",
    guards: false,
    variable: c"HEAPTOLL_SWEEP",
    names: &[b"every", b"heap", b"reclaim", b"free", b"markers", b"sweep"],
    allowed: "write every=SIZE (1B or more), heap=SIZE (4K or more), reclaim=K (1 or more), free=ignore or \
              free=honour, markers=N (1 to 64), sweep=eager or sweep=lazy, with commas between them",
    defaults: Settings::new(),
};

/// The layer that guards.
pub const GUARD: Layer = Layer {
    name: "guard",
    guards: true,
    variable: c"HEAPTOLL_GUARD",
    names: &[b"waiting", b"headroom", b"report", b"abort", b"markers"],
    allowed: "write waiting=SIZE (4K or more), headroom=PERCENT (1 to 10000), report=stderr or report=off, abort=on \
              or abort=off, markers=N (1 to 64), with commas between them",
    defaults: Settings { headroom: 50, ..Settings::new() },
};

/// How a layer works.
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
    /// Percent of what a collection reads that may be allocated, or in the guard layer wait, before the next.
    pub headroom: usize,
    /// The most that freed blocks may come to without a pass, bytes.
    pub waiting: usize,
    /// What is found wrong is written on standard error.
    pub report: bool,
    /// What is found wrong ends the process.
    pub abort: bool,
}

impl Settings {
    /// The defaults.
    pub const fn new() -> Settings {
        Settings {
            every: None,
            heap: None,
            reclaim: 1,
            honour: false,
            markers: None,
            lazy: false,
            headroom: HEADROOM,
            waiting: usize::MAX,
            report: true,
            abort: false,
        }
    }

    /// Reads the value of a layer's variable.
    ///
    /// # Errors
    /// The first pair that is not possible; one that is set twice is not either.
    pub fn read<'a>(layer: &Layer, text: &'a [u8]) -> Result<Settings, InvalidPair<'a>> {
        let mut read = layer.defaults;
        let mut seen = 0_u32;
        settings::each(text, |name, value| {
            let Some(at) = layer.names.iter().position(|&known| known == name) else { return false };
            if seen & 1 << at != 0 {
                return false;
            }
            seen |= 1 << at;
            let size = |least: usize| settings::size(value).filter(|&bytes| bytes >= least);
            let number = |most: u64| settings::number(value).filter(|number| (1..=most).contains(number));
            let choice = |no: &[u8], yes: &[u8]| (value == no || value == yes).then_some(value == yes);
            match name {
                b"every" => size(1).map(|bytes| read.every = Some(bytes)),
                b"heap" => size(4096).map(|bytes| read.heap = Some(bytes)),
                b"reclaim" => number(1 << 32).map(|number| read.reclaim = number),
                b"free" => choice(b"ignore", b"honour").map(|yes| read.honour = yes),
                b"markers" => number(64).map(|number| read.markers = Some(number as u32)),
                b"sweep" => choice(b"eager", b"lazy").map(|yes| read.lazy = yes),
                b"waiting" => size(4096).map(|bytes| read.waiting = bytes),
                b"headroom" => number(10_000).map(|percent| read.headroom = percent as usize),
                b"report" => choice(b"off", b"stderr").map(|yes| read.report = yes),
                _ => choice(b"off", b"on").map(|yes| read.abort = yes),
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
        for layer in [SWEEP, GUARD] {
            assert_eq!(Settings::read(&layer, b""), Ok(layer.defaults));
            assert_eq!(Settings::read(&layer, b","), Ok(layer.defaults));
        }
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
            ..Settings::new()
        };
        assert_eq!(Settings::read(&SWEEP, text), Ok(all));
        assert_eq!(Settings::read(&SWEEP, b"every=1B"), Ok(Settings { every: Some(1), ..Settings::new() }));
        assert_eq!(Settings::read(&SWEEP, b"free=ignore,sweep=eager"), Ok(Settings::new()));
        let text = b"waiting=64M,headroom=25,report=off,abort=on,markers=2";
        let all = Settings {
            waiting: 64 << 20,
            headroom: 25,
            report: false,
            abort: true,
            markers: Some(2),
            ..Settings::new()
        };
        assert_eq!(Settings::read(&GUARD, text), Ok(all));
        assert_eq!(Settings::read(&GUARD, b"report=stderr,abort=off"), Ok(GUARD.defaults));
    }

    #[test]
    fn an_impossible_pair_is_an_error() {
        for pair in [
            &b"waiting=4095"[..],
            b"headroom=0",
            b"headroom=10001",
            b"report=log",
            b"abort=yes",
            b"markers=0",
            b"every=1",
        ] {
            assert_eq!(Settings::read(&GUARD, pair), Err(InvalidPair { pair }));
        }
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
            b"waiting=1M",
        ] {
            assert_eq!(Settings::read(&SWEEP, pair), Err(InvalidPair { pair }));
        }
        assert_eq!(Settings::read(&SWEEP, b"every=1,every=2"), Err(InvalidPair { pair: b"every=2" }));
    }
}
