//! An estimate of how long a command will take, announced before it begins.

use std::time::Duration;

use indicatif::HumanDuration;

/// A shorter time is not announced, s.
const LONG_S: f64 = 10.0;

/// Runs that are to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// How many, and of what: `60 runs to make (3 stacks, 20 rounds)`.
    pub what: String,
    /// All together, s.
    pub seconds: f64,
    /// Whether it may be much longer.
    pub at_least: bool,
    /// Under which condition: `a run takes what the proof run took`.
    pub provided: String,
}

impl Estimate {
    /// In a sentence, where it is long.
    pub fn sentence(&self) -> Option<String> {
        let time = HumanDuration(Duration::from_secs_f64(self.seconds.clamp(0.0, 1e9)));
        let bound = if self.at_least { "more than" } else { "about" };
        (self.seconds >= LONG_S).then(|| format!("{}: {bound} {time}, if {}", self.what, self.provided))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_long_is_announced() {
        let of = |seconds, at_least| Estimate {
            what: "6 runs".into(),
            seconds,
            at_least,
            provided: "all is well".into(),
        };
        assert_eq!(of(9.0, false).sentence(), None);
        assert_eq!(of(120.0, false).sentence().as_deref(), Some("6 runs: about 2 minutes, if all is well"));
        let sentence = of(f64::INFINITY, true).sentence();
        assert!(sentence.is_some_and(|sentence| sentence.starts_with("6 runs: more than ")));
    }
}
