//! `heaptoll compare A.db B.db`: what changed between two experiments.

use std::path::PathBuf;

use clap::Args;
use heaptoll_lab::compare::{across, judge_outputs};
use heaptoll_lab::comparison::Metric;
use heaptoll_lab::store::Store;
use heaptoll_report::terminal::{PairRow, render_pair};

use crate::failure::Failure;
use crate::terminal;

/// Compare what two experiments have in common: the same program under the same manager, B over A.
///
/// The two were not measured together, so a machine that changed between them shows as a difference. For a decision,
/// measure both in one `heaptoll run`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The earlier experiment
    a: PathBuf,
    /// The later one
    b: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// Files that cannot be read, or nothing in common.
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let (mut a, mut b) = (Store::read(&arguments.a)?, Store::read(&arguments.b)?);
    judge_outputs(&mut a);
    judge_outputs(&mut b);
    let rows: Vec<PairRow> = across(&a, &b)
        .into_iter()
        .map(|line| {
            let (label, scale) = match line.metric {
                Metric::PeakRss => ("peak RSS MiB", 1.0 / 1024.0),
                _ => ("CPU s", 1.0),
            };
            PairRow {
                program: line.program,
                stack: line.stack,
                metric: label.into(),
                a_median: Some(line.a_median * scale),
                b_median: Some(line.b_median * scale),
                verdict: heaptoll_lab::compare::across_verdict(line.metric, line.ratio),
                ratio: line.ratio,
            }
        })
        .collect();
    if rows.is_empty() {
        return Err(Failure::NothingToCompare(format!(
            "{} and {} have no program and manager in common with good rows in both",
            arguments.a.display(),
            arguments.b.display()
        )));
    }
    if a.machine != b.machine {
        let differ = [
            ("CPU", &a.machine.cpu, &b.machine.cpu),
            ("kernel", &a.machine.kernel, &b.machine.kernel),
            ("glibc", &a.machine.libc, &b.machine.libc),
            ("huge pages", &a.machine.thp, &b.machine.thp),
        ];
        for (what, in_a, in_b) in differ.into_iter().filter(|(_, in_a, in_b)| in_a != in_b) {
            terminal::warning(&format!("{what} differs: {in_a} in A, {in_b} in B"));
        }
    }
    let name = |path: &PathBuf| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    terminal::print(&render_pair(&name(&arguments.a), &name(&arguments.b), &rows, &terminal::style()))?;
    Ok(0)
}
