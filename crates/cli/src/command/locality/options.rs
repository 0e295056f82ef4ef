//! Values of the options of `heaptoll exact locality`.

use std::str::FromStr;

use heaptoll_locality::simulation::Sampling;

/// How the curves of large caches are obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SamplingArg {
    /// All lines
    Exact,
    /// One line in two to this power
    OneIn(u32),
}

impl FromStr for SamplingArg {
    type Err = String;

    fn from_str(text: &str) -> Result<SamplingArg, String> {
        let wrong = || {
            format!(
                "`{text}` is neither exact nor a rate: give one line in N, as in 1/16 (N is a power of two from 2 to \
                 65536)"
            )
        };
        if matches!(text, "exact" | "1" | "1/1") {
            return Ok(SamplingArg::Exact);
        }
        let one_in: u64 = match text.strip_prefix("1/") {
            Some(number) => number.parse().map_err(|_| wrong())?,
            None => {
                let rate: f64 = text.parse().map_err(|_| wrong())?;
                // As 0.0625; what is no power of two is refused below.
                let one_in = if rate > 0.0 && rate < 1.0 { 1.0 / rate } else { rate };
                if one_in.fract() != 0.0 || !(2.0..=65536.0).contains(&one_in) {
                    return Err(wrong());
                }
                one_in as u64
            }
        };
        if !one_in.is_power_of_two() || !(2..=65536).contains(&one_in) {
            return Err(wrong());
        }
        Ok(SamplingArg::OneIn(one_in.trailing_zeros()))
    }
}

impl SamplingArg {
    /// The simulators' sampling; `None`: they follow all lines.
    pub fn sampling(self) -> Option<Sampling> {
        match self {
            SamplingArg::Exact => None,
            SamplingArg::OneIn(shift) => Some(Sampling { shift, ..Sampling::default() }),
        }
    }
}

/// A size as a command line gives it, bytes: a power of two within bounds.
fn power(text: &str, from: u64, to: u64) -> Result<u64, String> {
    let bytes =
        heaptoll_units::size(text).filter(|bytes| bytes.is_power_of_two() && (from..=to).contains(bytes));
    bytes.ok_or_else(|| {
        format!(
            "give a power of two from {} to {}",
            heaptoll_units::size_text(from),
            heaptoll_units::size_text(to)
        )
    })
}

/// `--line`.
pub fn line(text: &str) -> Result<u64, String> {
    power(text, 8, 4096)
}

/// `--page`.
pub fn page(text: &str) -> Result<u64, String> {
    power(text, 512, 1 << 30)
}

/// `--window`: references of the program, `64K` or `1000000`.
pub fn window(text: &str) -> Result<u64, String> {
    heaptoll_units::size(text)
        .filter(|number| *number > 0)
        .ok_or_else(|| "give a number of references, as in 1000000 or 1M".to_string())
}

/// Sizes that tables have a column for, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizes(pub Vec<u64>);

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Sizes, String> {
        let sizes = text.split(',').map(|word| {
            let bytes = heaptoll_units::size(word.trim()).filter(|bytes| (64..=1 << 40).contains(bytes));
            bytes.ok_or_else(|| {
                format!("`{}` is not a size: write 128K, for example (64 bytes to 1024G)", word.trim())
            })
        });
        let mut sizes = sizes.collect::<Result<Vec<u64>, String>>()?;
        sizes.sort_unstable();
        sizes.dedup();
        if sizes.len() > 12 {
            return Err("at most 12 sizes fit side by side".into());
        }
        Ok(Sizes(sizes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_is_a_word_or_a_power_of_two() {
        let of = |text: &str| text.parse::<SamplingArg>();
        assert_eq!([of("exact"), of("1")], [Ok(SamplingArg::Exact), Ok(SamplingArg::Exact)]);
        assert_eq!([of("1/16"), of("16"), of("0.0625")], [(); 3].map(|()| Ok(SamplingArg::OneIn(4))));
        for wrong in ["", "0", "1/0", "1/3", "3", "0.3", "-2", "nan", "inf", "1/131072", "auto"] {
            assert!(of(wrong).is_err_and(|why| why.contains(wrong) && why.contains("1/16")), "{wrong}");
        }
        assert_eq!(SamplingArg::Exact.sampling(), None);
        assert_eq!(SamplingArg::OneIn(3).sampling().map(|one| one.shift), Some(3));
    }

    #[test]
    fn sizes_are_read_in_order_and_once() {
        assert_eq!("1M,128K, 1024K".parse(), Ok(Sizes(vec![128 << 10, 1 << 20])));
        assert!("1M,much".parse::<Sizes>().is_err_and(|why| why.contains("`much`")));
        assert!("1M,2".parse::<Sizes>().is_err());
        assert_eq!((line("32"), page("4K")), (Ok(32), Ok(4096)));
        assert!(line("48").is_err() && line("8K").is_err() && page("64").is_err());
        assert_eq!((window("1M"), window("0").is_err()), (Ok(1 << 20), true));
    }
}
