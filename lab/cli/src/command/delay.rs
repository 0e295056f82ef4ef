//! `heaptoll lab delay`: what it costs when freed memory waits.

use clap::Args;
use heaptoll::entry::{Command, writes};
use heaptoll::session::Session;
use heaptoll_command::failure::Failure;
use heaptoll_laboratory::delay;
use heaptoll_laboratory::delay::NO_DELAY;
use heaptoll_units::size;

use crate::study_arguments::{StudyArguments, deliver};

/// What late frees cost: time and memory over the size of a quarantine.
///
/// Collectors return memory late. A quarantine does the same to an allocator: freed blocks wait until their bytes
/// reach its size, then all of them are freed. The program runs under each manager with quarantines of several sizes,
/// in interleaved random order. Ratios are to a quarantine of 1 byte, which delays nothing and has the same cost of
/// its own (Sareen and Blackburn 2022, section 7). That cost is shown separately.
///
/// Exit status: 0 all well; 1 a stack failed, gave wrong output or was refused, or an output file could not be
/// written; 2 bad request; 130 interrupted (finished runs are shown and kept).
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll lab delay -- gawk -f report.awk data.txt\n  \
    heaptoll lab delay -m mimalloc3 -m ./libmine.so --sizes 64K,2M -- ./server --selftest\n  \
    heaptoll lab delay -p cfrac -p espresso -p gawk --html delay.html --json delay.json\n  \
    heaptoll lab delay --resume delay.db -n 20                  (ten more repetitions)")]
pub struct Arguments {
    /// A manager to put a quarantine in front of, by name (`heaptoll managers`) or path, or a group; may be given
    /// several times [default: tcmalloc, mimalloc3, snmalloc, if they are built]
    #[arg(short, long, value_name = "MANAGER", conflicts_with = "resume")]
    manager: Vec<String>,
    /// Sizes of the quarantine; 1B is always added, and all are compared with it
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', value_parser = quarantine,
        default_value = "1B,4K,16K,64K,256K,1M,2M,8M,64M", conflicts_with = "resume")]
    sizes: Vec<u64>,
    #[command(flatten)]
    study: StudyArguments,
}

fn quarantine(text: &str) -> Result<u64, String> {
    size(text)
        .filter(|bytes| *bytes >= NO_DELAY)
        .ok_or_else(|| "give sizes of 1B or more, such as 4K or 2M".into())
}

impl Command for Arguments {
    const NAME: &'static str = "lab delay";
    const FIRST: &'static [&'static str] = &["sizes"];
    writes!(of: delay::DelayFigures);

    fn run(arguments: &Self) -> Result<u8, Failure> {
        let session = Session::begin()?;
        let request = delay::DelayRequest {
            manager: arguments.manager.clone(),
            sizes_bytes: arguments.sizes.clone(),
            study: arguments.study.request(),
        };
        let result = delay::run(&request, &session.context())?;
        deliver(&result, &arguments.study.outputs, Self::NAME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarantine_holds_at_least_a_byte() {
        assert_eq!(quarantine("1B"), Ok(1));
        assert_eq!(quarantine("2M"), Ok(2 << 20));
        assert!(quarantine("0").is_err() && quarantine("much").is_err());
    }
}
