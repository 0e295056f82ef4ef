//! Times as options give them: `90s`, `10m`, `1h30m`.

/// Seconds of a time; a number alone is seconds.
///
/// # Errors
/// The text is no time; the error is a message for the user.
pub fn duration(text: &str) -> Result<f64, String> {
    let seconds = heaptoll_units::duration(text).filter(|seconds| *seconds <= 1e7);
    seconds.ok_or_else(|| "give a time such as 90s, 10m or 1h30m".to_owned())
}

/// Milliseconds of a time that a request takes: `5ms`, `250us`, `1s`.
///
/// # Errors
/// The text is no such time; the error is a message for the user.
pub fn latency_ms(text: &str) -> Result<f64, String> {
    let units = [("ms", 1.0), ("us", 1e-3), ("s", 1e3)];
    let parsed = units.iter().find_map(|(unit, ms)| {
        let number = text.strip_suffix(unit)?.trim_end();
        number.parse::<f64>().ok().map(|number| number * ms)
    });
    let known = parsed.filter(|ms| *ms > 0.0 && *ms <= 1e7);
    known.ok_or_else(|| "give a time such as 5ms, 250us or 1s".to_owned())
}

/// Two times of a run, the second after the first: ns from its beginning.
///
/// # Errors
/// The text is no such pair; the error is a message for the user.
pub fn two_times(text: &str) -> Result<[u64; 2], String> {
    let times = text.split_once(',').and_then(|(from, to)| Some([time_ns(from)?, time_ns(to)?]));
    match times {
        Some([from, to]) if from < to => Ok([from, to]),
        Some(_) => Err("the second time must be after the first".into()),
        None => Err("give two times such as 10s,60s or 0,1h30m or 5ms,20ms".into()),
    }
}

fn time_ns(text: &str) -> Option<u64> {
    let text = text.trim();
    let number = text.trim_end_matches(char::is_alphabetic);
    let seconds = match (number.parse::<f64>(), &text[number.len()..]) {
        (Ok(0.0), "" | "h" | "m" | "s" | "ms" | "us" | "µs") => 0.0,
        (Ok(number), "ms") => number / 1e3,
        (Ok(number), "us" | "µs") => number / 1e6,
        _ => heaptoll_units::duration(text)?,
    };
    (0.0..=1e9).contains(&seconds).then_some((seconds * 1e9).round() as u64)
}

/// Seconds of a time limit.
///
/// # Errors
/// The text is no such number; the error is a message for the user.
pub fn positive_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 1e6 => Ok(seconds),
        _ => Err("give a number of seconds above 0".into()),
    }
}

/// Seconds of a time slice, given in milliseconds: `3ms`, `.5ms`.
///
/// # Errors
/// The text is no slice that the kernel grants; the error is a message for the user.
pub fn slice(text: &str) -> Result<f64, String> {
    let (shortest, longest) = heaptoll_launcher::slice::LIMITS;
    let milliseconds = text.strip_suffix("ms").and_then(|number| number.trim_end().parse::<f64>().ok());
    match milliseconds.map(|milliseconds| milliseconds / 1e3) {
        Some(seconds) if (shortest.as_secs_f64()..=longest.as_secs_f64()).contains(&seconds) => Ok(seconds),
        _ => Err("give a slice between .1ms and 100ms, such as 3ms".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_times_are_in_order() {
        assert_eq!(two_times("10s,1m"), Ok([10_000_000_000, 60_000_000_000]));
        assert_eq!(two_times("0, 0.5s"), Ok([0, 500_000_000]));
        assert_eq!(
            two_times("1.5ms,250 ms"),
            Err("give two times such as 10s,60s or 0,1h30m or 5ms,20ms".into())
        );
        for wrong in
            ["", "10s", "10s,5s", "5s,5s", "a,b", "1s,2s,3s", "-1s,2s", "-1ms,2s", "0,infms", "0x,1s"]
        {
            assert!(two_times(wrong).is_err(), "{wrong}");
        }
    }

    /// Before, `0s,10s` was refused, which reports write as the command that repeats them, and so was the unit in which
    /// `stat` states when most was live.
    #[test]
    fn a_time_may_be_zero_in_any_unit_or_shorter_than_a_second() {
        for zero in ["0", "0s", "0ms", "0m", "0.0s"] {
            assert_eq!(two_times(&format!("{zero},10s")), Ok([0, 10_000_000_000]), "{zero}");
        }
        assert_eq!(two_times("1.5ms,250ms"), Ok([1_500_000, 250_000_000]));
        assert_eq!(two_times("20us,30µs"), Ok([20_000, 30_000]));
    }

    #[test]
    fn slices_are_given_in_milliseconds() {
        assert_eq!(slice("3ms"), Ok(0.003));
        assert_eq!(slice("100 ms"), Ok(0.1));
        for text in ["3", "ms", "3s", "0ms", ".05ms", "101ms", "-1ms", "nanms"] {
            assert!(slice(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_of_requests_have_a_unit() {
        assert_eq!(latency_ms("5ms"), Ok(5.0));
        assert_eq!(latency_ms("250us"), Ok(0.25));
        assert_eq!(latency_ms("1.5s"), Ok(1500.0));
        assert!(["5", "ms", "0ms", "-1s", "infs", "nanms"].iter().all(|text| latency_ms(text).is_err()));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        assert_eq!(duration("1h30m"), Ok(5400.0));
        assert!(["", "10x", "0", "-5m", "99999999999h"].iter().all(|text| duration(text).is_err()));
    }
}
