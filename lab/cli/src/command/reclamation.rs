//! `heaptoll lab reclamation`: what it costs to free objects earlier or later.

use std::path::PathBuf;

use clap::Args;
use heaptoll::entry::{Command, writes};
use heaptoll::session::Session;
use heaptoll_command::failure::Failure;
use heaptoll_laboratory::oracle;
use heaptoll_laboratory::reclamation::{self, point_of};
use heaptoll_oracle::FreePoint;

use crate::study_arguments::{StudyArguments, deliver};

/// The cost of freeing objects earlier or later than the program does, over one manager.
///
/// A recording of each program (`heaptoll lab oracle`, made first if it is missing) says when each object is last
/// used. The program then runs natively over each manager, and frees its objects at another point. The points are the
/// last use, the loss of the last pointer, the program's own free, later by some bytes, at collections, or never.
/// Manager and layer stay the same; only the time of the free differs, without the work to find dead objects. Ratios
/// are to the program's own free.
///
/// Exit status: 0 all well; 1 a stack failed, gave wrong output or was refused, or an output file could not be
/// written; 2 bad request; 130 interrupted (finished runs are shown and kept).
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll lab reclamation -- gawk -f report.awk access.log\n  \
    heaptoll lab reclamation -p cfrac -p espresso -m mimalloc3 --pairing lockstep --html reclamation.html\n  \
    heaptoll lab reclamation -p perl --points last-use,delay:4K,delay:1M,collect:1M\n  \
    heaptoll lab reclamation --resume reclamation.db -n 20      (ten more repetitions)")]
pub struct Arguments {
    /// The fixed manager, by name (`heaptoll managers`) or path, or a group; may be given several times [default:
    /// glibc, mimalloc3, tithe-explicit, if they are built]
    #[arg(short, long, value_name = "MANAGER", conflicts_with = "resume")]
    manager: Vec<String>,
    /// When objects are freed: last-use, unreachable, free, delay:SIZE after the program's free, collect:SIZE at the
    /// next multiple of SIZE allocated, never. All are compared with free, which is always added [default:
    /// last-use,free,delay:64K,delay:1M,collect:64K,collect:1M,never, and unreachable if all recordings have it
    /// (`heaptoll lab oracle --graph`)]
    #[arg(long, value_name = "POINT,...", value_delimiter = ',', value_parser = point, conflicts_with = "resume")]
    points: Vec<FreePoint>,
    /// Folder of the recordings; missing and outdated ones are made first [default: $XDG_CACHE_HOME/heaptoll/oracles]
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    oracles: Option<PathBuf>,
    #[command(flatten)]
    study: StudyArguments,
}

/// Points where none are named.
const DEFAULT: [FreePoint; 7] = [
    FreePoint::LastUse,
    FreePoint::Free,
    FreePoint::Delay(64 << 10),
    FreePoint::Delay(1 << 20),
    FreePoint::Collect(64 << 10),
    FreePoint::Collect(1 << 20),
    FreePoint::Never,
];

fn point(text: &str) -> Result<FreePoint, String> {
    point_of(text).ok_or_else(|| "give last-use, unreachable, free, delay:SIZE, collect:SIZE or never".into())
}

impl Command for Arguments {
    const NAME: &'static str = "lab reclamation";
    const FIRST: &'static [&'static str] = &["points"];
    writes!(of: reclamation::ReclamationFigures);

    fn run(arguments: &Self) -> Result<u8, Failure> {
        let session = Session::begin()?;
        let folder = arguments.oracles.clone().unwrap_or_else(oracle::folder);
        let oracles = std::path::absolute(&folder)
            .ok()
            .filter(|path| path.to_str().is_some_and(|text| !text.contains([',', '\n'])))
            .ok_or_else(|| {
                let folder = folder.display();
                Failure::Usage(format!(
                    "--oracles {folder}: a path that has a comma or is not UTF-8 cannot be part of a stack's name"
                ))
            })?;
        let request = reclamation::ReclamationRequest {
            manager: arguments.manager.clone(),
            points: if arguments.points.is_empty() { DEFAULT.to_vec() } else { arguments.points.clone() },
            adds_unreachable: arguments.points.is_empty(),
            oracles,
            study: arguments.study.request(),
        };
        let result = reclamation::run(&request, &session.context())?;
        deliver(&result, &arguments.study.outputs, Self::NAME)
    }
}
