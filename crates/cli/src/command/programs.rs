//! `heaptoll programs`: the catalog, and programs of others, which the laboratory adds to it.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use heaptoll_command::failure::Failure;
use heaptoll_compare::programs;
use heaptoll_experiment::extension::require;
use heaptoll_experiment::places::Places;
use heaptoll_report::terminal::programs_table;

use crate::documents::ListOutput;
use crate::entry::{Command, writes};
use crate::{exit, terminal};

/// List the programs of the catalog, or add some.
///
/// The list says what each does, which Debian package contains it, and whether it is installed.
///
/// `heaptoll programs add malloc-bench` adds the programs of the papers, which heaptoll may not ship. `add lucene`
/// and `add h2` add programs in Java; `add dacapo` and `add renaissance` add suites that you have as a jar. The
/// laboratory does this: `make lab`, or the archive heaptoll-lab of the release.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    /// A folder with your own catalog entries (docs/reference/program-format.md)
    #[arg(long, value_name = "DIR")]
    catalog: Option<PathBuf>,
    #[command(flatten)]
    output: ListOutput,
    #[command(subcommand)]
    pub action: Option<Action>,
}

/// What the laboratory does.
#[derive(Debug, Subcommand)]
pub enum Action {
    Add(AddArguments),
}

/// Fetch, check, build and prove programs of other projects, for your own use: their licences restrict
/// redistribution.
///
/// `malloc-bench` is cfrac, espresso, gawk, gs, make and perl as Zorn (1992) and Detlefs, Dosser and Zorn (1994)
/// measured them. They come with yacr2 from the test suite of LLVM. Every file is compared with a digest. Each
/// program runs once, to check its output and its number of objects. It needs git, a C compiler with -std=gnu89 (CC,
/// else cc) and a minute or two. It writes to $XDG_DATA_HOME/heaptoll/programs only.
///
/// `lucene` and `h2` are jars of Maven Central, compared with a digest, with drivers of ours (docs/lab/jvm.md). They
/// need curl and javac (default-jdk-headless).
///
/// `spec2017` uses an installed SPEC CPU 2017 in a folder (--from). Each benchmark that `runcpu --action=setup` has
/// set up becomes an entry; test, train and ref become the sizes quick, demo and full. Nothing is copied.
///
/// `dacapo` and `renaissance` are suites whose jar you name by --from. The jar stays in its place. Its digest is
/// recorded, and another jar is refused from then on.
///
/// The laboratory does this: `make lab`, or the archive heaptoll-lab of the release.
///
/// Exit status: 0 all well; 1 some programs or forms could not be added; 2 none could be.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll programs add malloc-bench\n  \
    heaptoll programs add malloc-bench --from ~/llvm-test-suite     (a clone, without network)\n  \
    heaptoll programs add lucene --from ~/jars                      (a folder with the jar)\n  \
    heaptoll programs add dacapo --from ~/dacapo-23.11-MR2-chopin.jar\n  \
    heaptoll programs add spec2017 --from /opt/cpu2017              (what is built there)\n  \
    heaptoll run --program mb-cfrac --size quick                    (and measure one)")]
pub struct AddArguments {
    /// `malloc-bench`, `mimalloc-bench`, `lucene`, `h2`, `dacapo`, `renaissance`, `spec2017`, or a folder with your
    /// own recipe
    #[arg(value_name = "NAME")]
    pub recipe: String,
    /// A git URL, or a clone, bare repository or folder with the sources. For Java, the jar or a folder with the
    /// jars; for SPEC, its folder [default: the project's repository, Maven Central]
    #[arg(long, value_name = "WHERE")]
    pub from: Option<String>,
    /// The digest of a suite's jar, as its authors or a paper give it
    #[arg(long, value_name = "HEX", value_parser = digest)]
    pub sha256: Option<String>,
}

/// A SHA-256 in hexadecimal.
fn digest(text: &str) -> Result<String, String> {
    let is_digest = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest.then(|| text.to_ascii_lowercase()).ok_or_else(|| "give 64 hexadecimal digits".into())
}

impl Command for Arguments {
    const NAME: &'static str = "programs";
    writes!(of: programs::ProgramsFigures);

    fn run(arguments: &Self) -> Result<u8, Failure> {
        if arguments.action.is_some() {
            require("`heaptoll programs add`")?;
        }
        let found = programs::list(arguments.catalog.as_deref(), &Places::find()?)?;
        let table = programs_table(&found.programs, &terminal::style()) + &found.sets_text();
        let written = arguments.output.deliver(&table, &found)?;
        Ok(if written { 0 } else { exit::TROUBLE })
    }
}
