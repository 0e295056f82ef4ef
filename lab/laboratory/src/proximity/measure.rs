//! The runs: how much a program allocates, then each collector at each period, the periods interleaved in random order.

use heaptoll_experiment::experiment::{ProgramInfo, StackInfo};
use heaptoll_experiment::manager::Manager;
use heaptoll_experiment::observation::{Observation, Outcome, Phase};
use heaptoll_statistics::ALPHA;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::distance::Distances;
use super::figures::{Program, Scale, Stack};
use super::groups::{Shape, group, normalise};
use super::java_pauses;
use super::marks::{Marking, Marks};
use super::portions::{Series, portions, series};
use super::selection;
use crate::collecting;
use heaptoll_command::collector_options;
use heaptoll_command::context::Progress;
use heaptoll_command::failure::Failure;
use heaptoll_runs::chosen::{Rows, ending};
use heaptoll_runs::preparation::baseline;
use heaptoll_runs::preparation::derived::proved_as;
use heaptoll_runs::preparation::estimate::Estimate;

/// The measurements of each program.
pub struct Plan<'a> {
    /// Managers by name.
    pub known: &'a [Manager],
    /// Collectors.
    pub stacks: &'a [Manager],
    /// Whether they are Java's.
    pub java: bool,
    /// Collections a run.
    pub collections: &'a [u64],
    /// Groups.
    pub shape: Shape,
    /// Whether the processor time of requests is recorded.
    pub cpu: bool,
    /// Runs of each.
    pub repetitions: u32,
    /// Of their order.
    pub seed: u64,
    /// Progress.
    pub progress: &'a dyn Progress,
}

/// What the first run of a program showed.
struct First {
    /// Bytes that it requests.
    bytes: u64,
    /// Its output, where it is a program's.
    digest: Option<String>,
}

/// A period on the way.
struct Cell {
    scale: Scale,
    stack: StackInfo,
    runs: Vec<Distances>,
}

impl Plan<'_> {
    /// Makes all measurements of one program. What was measured until Ctrl-C is in `into`.
    ///
    /// # Errors
    /// Ctrl-C, the program does not work or marks no requests, or heaptoll's own machinery failed.
    pub fn measure(&self, program: &ProgramInfo, rows: &mut Rows, into: &mut Program) -> Result<(), Failure> {
        self.progress.set_text(&format!("{}: how much it allocates", program.name));
        let is_new = rows.is_new(&program.name);
        let (first, run_s) = self.first(program, rows)?;
        if is_new {
            self.announce(program, run_s, rows);
        }
        into.requested_bytes = first.bytes;
        let measured = self.stacks.iter().try_for_each(|stack| -> Result<(), Failure> {
            into.stacks.push(self.stack(program, stack, &first, rows)?);
            Ok(())
        });
        let scales = || into.stacks.iter().flat_map(|stack| &stack.scales);
        let shown: Vec<&[Series]> = scales().map(|scale| scale.series.as_slice()).collect();
        let found = portions(&shown, ALPHA, self.seed);
        let scales = into.stacks.iter_mut().flat_map(|stack| &mut stack.scales);
        scales.zip(found).for_each(|(scale, found)| scale.stretches = found);
        measured
    }

    /// Announces how long the program will take, where that is long; `run_s` is what a run without a collector took.
    fn announce(&self, program: &ProgramInfo, run_s: f64, rows: &Rows) {
        let (stacks, settings) = (self.stacks.len(), self.collections.len());
        let runs = stacks * settings * self.repetitions as usize;
        let estimate = Estimate {
            what: format!(
                "{}: {runs} runs to make ({stacks} stacks, {settings} numbers of collections, {} runs of each)",
                program.name, self.repetitions
            ),
            seconds: runs as f64 * run_s,
            at_least: true,
            provided: "a run takes what the first one took, which had no collections".into(),
        };
        if let Some(words) = estimate.sentence() {
            rows.context.messages.note(&words);
        }
    }

    /// The stack of the first run: the counting layer in front of glibc, or the first of Java's collectors that serves.
    fn first_stack(&self, program: &ProgramInfo, rows: &Rows) -> Result<StackInfo, Failure> {
        let refused = |why: String| Failure::NothingToCompare(format!("{}: {why}", program.name));
        if !self.java {
            let glibc = rows.proved(&program.name, baseline::DEFAULT).map_err(refused)?;
            let count = rows.context.places.count_layer().display().to_string();
            return Ok(StackInfo {
                name: format!("count/{}", glibc.name),
                preload: std::iter::once(count).chain(glibc.preload).collect(),
                reports_statistics: true,
                ..glibc
            });
        }
        let mut why = String::new();
        for stack in self.stacks {
            match rows.proved(&program.name, &stack.name) {
                Ok(proved) => {
                    return self.with(&proved, stack, &format!("every={}", java_pauses::FIRST_PERIOD));
                }
                Err(refusal) => why = refusal,
            }
        }
        Err(refused(why))
    }

    /// A proved stack with further options.
    fn with(&self, proved: &StackInfo, stack: &Manager, options: &str) -> Result<StackInfo, Failure> {
        let manager = collector_options::with(self.known, stack, options)?;
        Ok(proved_as(proved, &manager, &manager.name, "without a period"))
    }

    /// What the program's first run shows, and what it took, s.
    fn first(&self, program: &ProgramInfo, rows: &mut Rows) -> Result<(First, f64), Failure> {
        let stack = self.first_stack(program, rows)?;
        let (row, marks) = self.run(&stack, Phase::Search, 0, rows)?;
        let under = match self.java {
            true => format!("{} and glibc", stack.name),
            false => "glibc and without a collector".into(),
        };
        let wrong = |why: String| Failure::NothingToCompare(format!("{} under {under}: {why}", program.name));
        if let Some(why) = failure(&row, None).or_else(|| marks.unreadable.clone()) {
            return Err(wrong(why));
        }
        if marks.processes.iter().all(|process| process.requests.is_empty()) {
            return Err(wrong(format!(
                "it marks no requests: include heaptoll_events.h and call heaptoll_event_begin and heaptoll_event_end \
                 around each, or take one of {} (docs/questions/events.md)",
                selection::PROGRAMS.join(", ")
            )));
        }
        match marks.allocated {
            0 if self.java => Err(wrong(format!(
                "its virtual machine collects less than twice while requests go on, with a young generation of {} MiB; \
                 give it more requests",
                java_pauses::FIRST_PERIOD >> 20
            ))),
            0 => Err(wrong("it allocates nothing, so there is nothing to collect".into())),
            bytes => {
                let digest = program.serve.is_none().then_some(row.output_digest);
                Ok((First { bytes, digest }, row.wall_s))
            }
        }
    }

    /// The row of a run under the events layer, and what it marked.
    fn run(
        &self,
        stack: &StackInfo,
        phase: Phase,
        repetition: u32,
        rows: &mut Rows,
    ) -> Result<(Observation, Marks), Failure> {
        let layer = rows.context.places.layer("events");
        let mut marking = Marking { layer: &layer, cpu: self.cpu, is_java: self.java, events: None };
        let row = rows.row(stack, phase, repetition, &mut marking)?;
        let marks = rows.kept(&row)?.and_then(|bytes| Marks::unpacked(&bytes));
        match marks {
            Some(marks) => Ok((row, marks)),
            None => Err(rows.store.damaged(&format!("the marks of run {} are not whole", row.order)).into()),
        }
    }

    fn stack(
        &self,
        program: &ProgramInfo,
        stack: &Manager,
        first: &First,
        rows: &mut Rows,
    ) -> Result<Stack, Failure> {
        let mut row = Stack {
            stack: stack.name.clone(),
            scales: vec![],
            fastest_mean_ns: None,
            fastest_median_ns: None,
            refused: None,
        };
        let proved = match rows.proved(&program.name, &stack.name) {
            Ok(proved) => proved,
            Err(why) => {
                self.progress.advance(self.collections.len() as u64 * u64::from(self.repetitions));
                row.refused = Some(why);
                return Ok(row);
            }
        };
        let mut cells: Vec<Cell> = Vec::new();
        for &aimed_at in self.collections {
            let least = if self.java { java_pauses::LEAST_PERIOD } else { 1 };
            let every = (first.bytes / aimed_at.max(1)).max(least);
            if let Some(same) = with_period(&cells, every) {
                let (program, stack) = (&program.name, &stack.name);
                rows.context.messages.note(&format!(
                    "{program} under {stack}: {aimed_at} collections need the same period as {}, {every} bytes, and are \
                     left out",
                    same.scale.aimed_at
                ));
                self.progress.advance(self.repetitions.into());
                continue;
            }
            let stack = self.with(&proved, stack, &collecting::options(stack, &format!("every={every}")))?;
            rows.add(&stack)?;
            cells.push(Cell { scale: Scale::new(aimed_at, every), stack, runs: vec![] });
        }
        self.runs(program, &mut cells, first, rows)?;
        for Cell { mut scale, runs, .. } in cells {
            scale.grouped = group(&runs, self.shape);
            scale.series = series(&runs, scale.grouped.cap_ns);
            row.scales.push(scale);
        }
        row.scales.sort_by_key(|scale| scale.aimed_at);
        let all: Vec<_> = row.scales.iter().map(|scale| &scale.grouped).collect();
        row.fastest_mean_ns = normalise(&all, |group| group.mean_ns);
        row.fastest_median_ns = normalise(&all, |group| group.median_ns);
        Ok(row)
    }

    /// Runs of each period, all of a repetition before the next one's.
    fn runs(
        &self,
        program: &ProgramInfo,
        cells: &mut [Cell],
        first: &First,
        rows: &mut Rows,
    ) -> Result<(), Failure> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        for repetition in 0..self.repetitions {
            let mut order: Vec<usize> = (0..cells.len()).collect();
            order.shuffle(&mut rng);
            for at in order {
                let Cell { scale, stack, runs } = &mut cells[at];
                self.progress.set_text(&format!(
                    "{} under {}, {} collections, run {}",
                    program.name,
                    stack.name,
                    scale.aimed_at,
                    repetition + 1
                ));
                // A lasting failure would only take the same time again.
                if scale.failures.len() < 2 || !runs.is_empty() {
                    match self.run(stack, Phase::Timed, repetition, rows) {
                        Ok((row, marks)) => self.count(program, (&row, &marks), first, scale, runs),
                        // What there is, is shown; the command sees that it was cancelled.
                        Err(Failure::Interrupted) if cells.iter().any(|cell| !cell.runs.is_empty()) => {
                            return Ok(());
                        }
                        Err(failure) => return Err(failure),
                    }
                }
                self.progress.advance(1);
            }
        }
        Ok(())
    }

    fn count(
        &self,
        program: &ProgramInfo,
        (row, marks): (&Observation, &Marks),
        first: &First,
        scale: &mut Scale,
        runs: &mut Vec<Distances>,
    ) {
        let counted = || marks.processes.iter().flat_map(|process| process.counted(self.java));
        let unreported = marks.processes.iter().any(|process| process.unreported);
        let none = (counted().count() == 0).then(|| match unreported {
            true => "its collections were reported to another process".into(),
            false => "no collection was reported".into(),
        });
        let why = failure(row, first.digest.as_ref()).or_else(|| marks.unreadable.clone()).or(none);
        if let Some(why) = why {
            scale.failures.push(why);
            return;
        }
        let distances = marks.distances(program.serve.is_some(), row.repetition);
        scale.collections.push(counted().count() as u64);
        scale.pause_ns += counted().map(|span| span.end_ns - span.start_ns).sum::<u64>();
        scale.requests += distances.whole.len() as u64;
        scale.interrupted += distances.interrupted.len() as u64 + distances.within;
        scale.before_first += distances.before_first;
        scale.lost += marks.lost;
        runs.push(distances);
    }
}

/// The one with this period: its runs would be those of another with it, and would count twice.
fn with_period(cells: &[Cell], every: u64) -> Option<&Cell> {
    cells.iter().find(|cell| cell.scale.every == every)
}

/// Why a run is not counted, if it is not.
fn failure(row: &Observation, digest: Option<&String>) -> Option<String> {
    match (&row.outcome, digest) {
        (Outcome::Ok, Some(digest)) if *digest != row.output_digest => Some("wrong output".into()),
        (Outcome::Ok, _) => None,
        _ => Some(ending(row)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Before, two numbers of collections with the shortest period shared their rows, and each run counted twice.
    #[test]
    fn a_period_that_two_numbers_of_collections_need_is_measured_once() {
        let cell = |aimed_at, every| Cell {
            scale: Scale::new(aimed_at, every),
            stack: StackInfo::default(),
            runs: vec![],
        };
        let cells = [cell(10, 8 << 20), cell(100, 1 << 20)];
        let found = |every| with_period(&cells, every).map(|same| same.scale.aimed_at);
        assert_eq!((found(1 << 20), found(8 << 20), found(4 << 20)), (Some(100), Some(10), None));
    }
}
