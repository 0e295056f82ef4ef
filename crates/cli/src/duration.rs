//! A time as people write it: `90s`, `10m`, `1h30m`.

/// Seconds of a time; a number alone is seconds.
///
/// # Errors
/// It is none, in words.
pub fn duration(text: &str) -> Result<f64, String> {
    let refuse = || "give a time such as 90s, 10m or 1h30m".to_owned();
    let mut seconds = 0.0;
    let mut number = String::new();
    // Units go from the largest down, each once.
    let mut least = f64::INFINITY;
    for c in text.chars() {
        if c.is_ascii_digit() || c == '.' {
            number.push(c);
            continue;
        }
        let unit = match c {
            'h' => 3600.0,
            'm' => 60.0,
            's' => 1.0,
            _ => return Err(refuse()),
        };
        if unit >= least {
            return Err(refuse());
        }
        least = unit;
        seconds += number.parse::<f64>().map_err(|_| refuse())? * unit;
        number.clear();
    }
    if !number.is_empty() {
        if least.is_finite() {
            return Err(refuse());
        }
        seconds = number.parse::<f64>().map_err(|_| refuse())?;
    }
    if seconds > 0.0 && seconds <= 1e7 { Ok(seconds) } else { Err(refuse()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        assert_eq!(duration("10m"), Ok(600.0));
        assert_eq!(duration("1h30m"), Ok(5400.0));
        assert_eq!(duration("90"), Ok(90.0));
        assert_eq!(duration("1.5m"), Ok(90.0));
        assert_eq!(duration("2m5s"), Ok(125.0));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in
            ["", "m", "10x", "0", "-5m", "5m10", "5s1m", "1m2m", "1..2s", "inf", "nan", "99999999999h"]
        {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
