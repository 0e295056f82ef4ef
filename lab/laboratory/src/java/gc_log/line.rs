//! One line of the log: its decorations, and what its message holds.

use crate::java::gc_log::error::GcLogError;

/// A line without its decorations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// Its number, from 1.
    pub number: usize,
    /// `CLOCK_MONOTONIC`, ns.
    pub time_ns: u64,
    /// Its tags, `gc,init`.
    pub tags: &'a str,
    /// The collection that it belongs to.
    pub collection: Option<u64>,
    /// What follows.
    pub message: &'a str,
}

impl<'a> Line<'a> {
    /// Reads a line without its end.
    ///
    /// # Errors
    /// It has not the three decorations.
    pub fn read(number: usize, text: &'a str) -> Result<Line<'a>, GcLogError> {
        let wrong = || GcLogError::Decorations { line: number };
        let (time, rest) = decoration(text).ok_or_else(wrong)?;
        let (_level, rest) = decoration(rest).ok_or_else(wrong)?;
        let (tags, rest) = decoration(rest).ok_or_else(wrong)?;
        let time_ns = time.strip_suffix("ns").and_then(|digits| digits.parse().ok()).ok_or_else(wrong)?;
        let message = rest.strip_prefix(' ').unwrap_or(rest);
        let (collection, message) = numbered(message);
        Ok(Line { number, time_ns, tags: tags.trim_end(), collection, message: less_generation(message) })
    }

    /// Whether it is of a pause that has ended: the heap's summary of it, or a phase of a concurrent collection.
    pub fn is_pause(&self) -> bool {
        matches!(self.tags, "gc" | "gc,phases") && self.message.starts_with("Pause ")
    }

    /// How long what it reports took, ns.
    ///
    /// # Errors
    /// A number that no duration can be.
    pub fn duration_ns(&self) -> Result<Option<u64>, GcLogError> {
        let last = self.message.rsplit(' ').next().unwrap_or(self.message);
        let (digits, per_unit) = match (last.strip_suffix("ms"), last.strip_suffix('s')) {
            (Some(digits), _) => (digits, 1e6),
            (None, Some(digits)) => (digits, 1e9),
            (None, None) => return Ok(None),
        };
        let Ok(value) = digits.parse::<f64>() else { return Ok(None) };
        let ns = value * per_unit;
        match (0.0..1e18).contains(&ns) {
            true => Ok(Some(ns.round() as u64)),
            false => Err(GcLogError::Figure { line: self.number, what: "a duration" }),
        }
    }

    /// The heap's use before and after, and its capacity, bytes: `34M->19M(123M)`, `128M(100%)->44M(34%)`.
    ///
    /// # Errors
    /// A number that no heap can have.
    pub fn heap(&self) -> Result<Option<(u64, u64, Option<u64>)>, GcLogError> {
        let Some(word) = self.message.split(' ').find(|word| word.contains("->")) else { return Ok(None) };
        let Some((before, after)) = word.split_once("->") else { return Ok(None) };
        let used = |text: &str| text.split('(').next().map_or(Ok(None), |text| self.bytes(text));
        let capacity = match after.split_once('(') {
            Some((_, text)) => self.bytes(text.trim_end_matches(')'))?,
            None => None,
        };
        Ok(used(before)?.zip(used(after)?).map(|(before, after)| (before, after, capacity)))
    }

    /// `34944K` in bytes; `None` where it is no size.
    ///
    /// # Errors
    /// More than 64 bits hold.
    pub fn bytes(&self, text: &str) -> Result<Option<u64>, GcLogError> {
        if !text.starts_with(|first: char| first.is_ascii_digit())
            || !text.ends_with(['B', 'K', 'M', 'G', 'T'])
        {
            return Ok(None);
        }
        let too_large = GcLogError::Figure { line: self.number, what: "a size" };
        heaptoll_units::size(text).ok_or(too_large).map(Some)
    }
}

/// The text of a decoration in brackets, and the rest.
fn decoration(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('[')?.split_once(']')
}

/// The number in `GC(7) Pause Young`, and the rest.
fn numbered(message: &str) -> (Option<u64>, &str) {
    let found = message.strip_prefix("GC(").and_then(|rest| {
        let (digits, rest) = rest.split_once(')')?;
        Some((digits.parse().ok()?, rest.trim_start()))
    });
    found.map_or((None, message), |(number, rest)| (Some(number), rest))
}

/// A message without the generation that later versions of ZGC put in front of it: `Y: Pause Mark End`.
fn less_generation(message: &str) -> &str {
    ["Y: ", "y: ", "O: "].into_iter().find_map(|prefix| message.strip_prefix(prefix)).unwrap_or(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line<'_> {
        Line::read(1, text).expect("a line")
    }

    #[test]
    fn the_summary_of_a_pause_has_all_its_figures() {
        let young = line(
            "[13646806768557ns][info][gc          ] GC(0) Pause Young (Allocation Failure) 34M->19M(123M) 93.921ms",
        );
        assert_eq!((young.time_ns, young.tags, young.collection), (13_646_806_768_557, "gc", Some(0)));
        assert!(young.is_pause());
        assert_eq!(young.duration_ns(), Ok(Some(93_921_000)));
        assert_eq!(young.heap(), Ok(Some((34 << 20, 19 << 20, Some(123 << 20)))));
        let phase = line("[1ns][info][gc,phases   ] GC(3) O: Pause Mark End 0.011ms");
        assert!(phase.is_pause() && phase.duration_ns() == Ok(Some(11_000)) && phase.heap() == Ok(None));
        let major =
            line("[1ns][info][gc          ] GC(0) Major Collection (Warmup) 14M(11%)->22M(17%) 0.021s");
        assert_eq!(
            (major.heap(), major.duration_ns()),
            (Ok(Some((14 << 20, 22 << 20, None))), Ok(Some(21_000_000)))
        );
        assert!(!line("[1ns][info][gc,start] GC(0) Pause Young (Normal)").is_pause());
        assert_eq!(line("[1ns][info][gc,heap] GC(0) Eden regions: 6->0(5)").heap(), Ok(None));
    }

    #[test]
    fn what_is_no_line_or_no_figure_is_refused() {
        for text in ["", "hello", "[1][info][gc] x", "[1ns][info] x", "[ns][info][gc] x", "[1ns][info][gc"] {
            assert_eq!(Line::read(4, text), Err(GcLogError::Decorations { line: 4 }), "{text}");
        }
        let huge = line("[1ns][info][gc] GC(0) Pause Full 99999999999999999999G->1M(2M) 1.0ms");
        assert_eq!(huge.heap(), Err(GcLogError::Figure { line: 1, what: "a size" }));
        let long = line("[1ns][info][gc] GC(0) Pause Full 1M->1M(2M) 1e30ms");
        assert_eq!(long.duration_ns(), Err(GcLogError::Figure { line: 1, what: "a duration" }));
    }
}
