//! The differences that this machine can show, reported once the first repetitions are made.

use std::time::Duration;

use heaptoll_experiment::forecast::{FIRST, Forecast};
use heaptoll_experiment::precision::MOST;
use heaptoll_units::{percent, written_percent};
use indicatif::HumanDuration;

/// An experiment that ends sooner is not worth a line.
const LEAST_S: f64 = 10.0;
/// The precision shown with an estimate where none was requested.
const FINE: f64 = 0.01;

/// The sentence after [`FIRST`] of `all` repetitions, which took `spent_s`; nothing where the rest is short.
pub fn sentence(found: &[Forecast], all: u32, spent_s: f64, precision: Option<f64>) -> Option<String> {
    let each_s = spent_s / f64::from(FIRST);
    let left_s = each_s * f64::from(all.saturating_sub(FIRST));
    if left_s < LEAST_S {
        return None;
    }
    let least = found.iter().map(|one| one.half).reduce(f64::min)?;
    let most = found.iter().map(|one| one.half).reduce(f64::max)?;
    let halves = match found {
        [_] => percent(least),
        _ => format!("{} to {}, by program,", percent(least), percent(most)),
    };
    let widest = found.iter().max_by(|a, b| a.widest.1.total_cmp(&b.widest.1))?;
    let (stack, half) = &widest.widest;
    let program = if found.len() == 1 { String::new() } else { format!(" on {}", widest.program) };
    let wanted = precision.filter(|wanted| *wanted > 0.0).unwrap_or(FINE);
    let needed = widest.needed(wanted, all);
    let more = if *half <= wanted {
        String::new()
    } else if needed > f64::from(MOST) {
        format!("; --precision {} would take more than {MOST} repetitions", written_percent(wanted))
    } else {
        let time = time(each_s * needed);
        format!(
            "; --precision {} would take about {:.0} repetitions in {time}",
            written_percent(wanted),
            needed.ceil()
        )
    };
    Some(format!(
        "this machine now: CPU differences of about {halves} in {} more ({all} repetitions), {} for {stack}{program}{more}",
        time(left_s),
        percent(*half),
    ))
}

fn time(seconds: f64) -> HumanDuration {
    HumanDuration(Duration::from_secs(seconds.ceil().min(1e9) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(program: &str, half: f64, widest: f64) -> Forecast {
        Forecast { program: program.into(), half, widest: ("slow".into(), widest) }
    }

    #[test]
    fn what_will_be_seen_is_one_sentence() {
        assert_eq!(
            sentence(&[of("a", 0.011, 0.02)], 15, 30.0, None).as_deref(),
            Some(
                "this machine now: CPU differences of about 1.1 % in 60 seconds more (15 repetitions), 2.0 % for slow; \
                 --precision 1% would take about 60 repetitions in 6 minutes"
            )
        );
        let several =
            sentence(&[of("a", 0.006, 0.01), of("b", 0.03, 0.3)], 10, 100.0, Some(0.025)).expect("long");
        assert!(
            several.contains("0.60 % to 3.0 %, by program, in") && several.contains("30.0 % for slow on b"),
            "{several}"
        );
        assert!(several.ends_with("--precision 2.5% would take more than 400 repetitions"), "{several}");
        assert!(!sentence(&[of("a", 0.005, 0.009)], 10, 40.0, None).expect("long").contains("--precision"));
    }

    #[test]
    fn short_experiments_and_a_baseline_by_itself_get_no_line() {
        assert_eq!(sentence(&[of("a", 0.011, 0.02)], 10, 6.0, None), None);
        assert_eq!(sentence(&[], 10, 60.0, None), None);
    }
}
