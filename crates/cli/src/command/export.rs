//! `heaptoll export`: a trace as Parquet.

use std::path::{Path, PathBuf};

use clap::Args;
use heaptoll_report::trace_parquet::{self, ExportError, sites_path};

use heaptoll_experiments::failure::Failure;

use crate::exit::TROUBLE;
use crate::memory::MemoryArguments;
use crate::terminal;
use heaptoll_experiments::trace_source;

/// Write a trace as Parquet, for DuckDB, pandas or Spark.
///
/// One row an event; docs/reference/trace-parquet.md explains the columns and shows queries. When the trace has call
/// stacks, they go to a second file (`x.sites.parquet` next to `x.parquet`).
///
/// Exit status: 0 all well; 1 the trace is damaged (what is whole is exported) or a file could not be written; 2 it is
/// no trace, cannot be read, or the file exists.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll export gawk.heaptoll\n  \
    heaptoll export gawk.heaptoll -o /tmp/gawk.parquet --force\n  \
    duckdb -c \"select kind, count(*), sum(size) from 'gawk.parquet' group by kind\"")]
pub struct Arguments {
    /// The trace that `heaptoll record` made; `-` is standard input
    trace: PathBuf,
    /// The file to write; without it, the trace's name with .parquet at its end, in the current folder
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace files that exist
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    memory: MemoryArguments,
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let path = match &arguments.output {
        Some(path) if path.as_os_str() == "-" => {
            return Err(Failure::Usage(
                "Parquet is not written to standard output, which has messages: name a file with -o".into(),
            ));
        }
        Some(path) => path.clone(),
        None => default_path(&arguments.trace)?,
    };
    let same = std::fs::canonicalize(&path)
        .and_then(|path| Ok(path == std::fs::canonicalize(&arguments.trace)?))
        .unwrap_or(false);
    if same {
        return Err(Failure::Usage(format!("{} is the trace itself: name another file", path.display())));
    }
    for path in [&path, &sites_path(&path)] {
        // Devices and pipes are there to be written to.
        if !arguments.force && path.is_file() {
            return Err(Failure::Usage(format!(
                "{} exists: name another file with -o, or pass --force to replace it",
                path.display()
            )));
        }
    }
    heaptoll_experiments::writable::check(&path)
        .map_err(|why| Failure::Usage(format!("cannot write {}: {why}", path.display())))?;
    let mut reader = trace_source::open(&arguments.trace, arguments.memory.each(0))?;
    let exported = trace_parquet::export(&mut reader, &path).map_err(|error| match error {
        ExportError::Trace(error) => trace_source::refused(error),
        ExportError::Report(error) => Failure::Report(error),
    })?;
    terminal::note(&format!("wrote {} events to {}", exported.rows, path.display()));
    if let Some(rows) = exported.site_rows {
        terminal::note(&format!("wrote {rows} frames of call stacks to {}", sites_path(&path).display()));
    }
    for warning in reader.warnings() {
        terminal::warning(warning);
    }
    Ok(if reader.warnings().is_empty() { 0 } else { TROUBLE })
}

/// The name of the trace with the extension .parquet, in the current folder.
fn default_path(trace: &Path) -> Result<PathBuf, Failure> {
    let name = trace.file_name().filter(|_| trace != Path::new("-"));
    let name = name.ok_or_else(|| {
        Failure::Usage("a trace from standard input has no name: name the file to write with -o".to_owned())
    })?;
    Ok(match Path::new(name).extension() {
        Some(end) if end == "heaptoll" => Path::new(name).with_extension("parquet"),
        _ => {
            let mut name = name.to_owned();
            name.push(".parquet");
            PathBuf::from(name)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_trace() {
        let name = |trace: &str| default_path(Path::new(trace)).ok();
        assert_eq!(name("/data/gawk.heaptoll"), Some("gawk.parquet".into()));
        assert_eq!(name("gawk.heaptoll.children/1234.2.heaptoll"), Some("1234.2.parquet".into()));
        assert_eq!(name("trace"), Some("trace.parquet".into()));
        assert_eq!(name("-"), None);
    }
}
