//! The gate of one program: watched runs, one repetition, counts and recordings, then paired runs until it is decided.

use std::sync::Arc;

use heaptoll_experiment::runner::Ending;
use heaptoll_experiment::store::Store;
use heaptoll_reftrace_host::Tracer;
use heaptoll_reftrace_host::allocator_symbols::Table;
use heaptoll_scratch::Scratch;

use super::evidence::Evidence;
use super::exact;
use super::figures::{Program, Verdict};
use super::judge::Remedy;
use super::judged::Judged;
use super::notes;
use super::prepare::{BASE, Begun, Prepared, Sides, prepare};
use super::request::{Entry, Request};
use super::side::{BuiltSide, Sameness};
use super::subject::Subject;
use super::timed::Timed;
use super::tree_error::TreeError;
use super::unopened::Differing;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;

/// How builds of two trees are the same.
const UNOPENED: &str = "no run opens a file that differs between the two builds' trees, paths, build IDs and debug \
                        information aside";

/// One program to gate.
pub struct Gate<'a> {
    /// The program.
    pub entry: &'a Entry,
    /// Its base.
    pub base: &'a BuiltSide,
    /// Its new build.
    pub new: &'a BuiltSide,
    /// What differs between the trees that both were built in.
    pub differing: Option<&'a Differing>,
    /// The tracer, or why there is none.
    pub tracer: Result<&'a Tracer, &'a String>,
    /// The allocators that are followed in it.
    pub table: &'a Arc<Table>,
    /// The request that it is a part of.
    pub request: &'a Request,
    /// The surroundings.
    pub context: &'a Context<'a>,
}

/// A program that was gated.
pub struct Gated {
    /// Its figures and its verdict.
    pub program: Program,
    /// Whether all runs were made.
    pub whole: bool,
    /// What the machine can see of it.
    pub sight: Option<String>,
}

impl Gate<'_> {
    /// Measures it and judges.
    ///
    /// # Errors
    /// See [`super::run`].
    pub fn run(&self, same: Sameness) -> Result<Gated, Failure> {
        let run_alike = self.base.command == self.new.command && self.base.manager == self.new.manager;
        let differing = self.differing.filter(|_| run_alike);
        let mut watch = differing.and_then(|differing| differing.watch().ok());
        let sides = Sides { entry: self.entry, base: self.base, new: self.new };
        let mut judged = Judged {
            name: &self.entry.name,
            base: self.base.described(),
            new: self.new.described(),
            limits: &self.entry.limits,
            outputs_differ: self.entry.outputs_differ,
            remedy: Remedy::Budget,
            unchanged: same.unchanged,
        };
        let begun = match prepare(&sides, &self.request.protocol, self.context)? {
            Prepared::Runs(begun) => *begun,
            Prepared::NewFails(how) => {
                return Ok(Gated { program: judged.failed(how), whole: true, sight: None });
            }
        };
        let mut unopened =
            || watch.as_mut().is_some_and(|watch| watch.is_unopened()).then(|| UNOPENED.to_owned());
        let of_files = judged.unchanged.clone();
        judged.unchanged = of_files.clone().or_else(&mut unopened);
        let scratch =
            Scratch::make().map_err(TreeError::Scratch).map_err(|error| Failure::Refused(Box::new(error)))?;
        let mut evidence = self.gather(&judged, begun, &scratch)?;
        let trouble = evidence.trouble.take();
        let (whole, sight) =
            (!evidence.interrupted, notes::sight(&evidence.measured, self.entry.outputs_differ));
        // Later runs may open what the first did not.
        judged.unchanged = of_files.or_else(unopened);
        let mut program = judged.judged(evidence);
        program.notes.extend(same.note);
        match trouble {
            Some(error) if program.verdict != Verdict::Broken => return Err(error.into()),
            Some(error) => program.notes.push(format!("the timed runs were broken off: {error}")),
            None => {}
        }
        Ok(Gated { program, whole, sight })
    }

    fn gather(&self, judged: &Judged, begun: Begun, scratch: &Scratch) -> Result<Evidence, Failure> {
        let Begun { experiment, run_s, together_bytes } = begun;
        let store = Store::create(&scratch.path().join("runs.db"), &experiment)?;
        let (stacks, protocol) = (experiment.stacks.clone(), experiment.settings.clone());
        let program = experiment.programs[0].clone();
        let mut timed = Timed::new(experiment, store, self.request.budget_s, run_s);
        if timed.first(self.context)? == Ending::Interrupted {
            return Err(Failure::Interrupted);
        }
        if let Some((_, _, how)) = timed.measured.failures(BASE) {
            return Err(Failure::Usage(format!("{}: the base build fails: {how}", self.entry.name)));
        }
        judged.check_outputs(&timed.measured)?;
        let subject = Subject {
            program: &program,
            stacks: [&stacks[0], &stacks[1]],
            managers: [self.base.manager.as_ref(), self.new.manager.as_ref()],
            protocol: &protocol,
            run_s,
            together_bytes,
            folder: scratch.path(),
        };
        let exact = exact::count(&subject, self.tracer, self.table, self.context)?;
        let rest = match self.context.interrupt.is_set() {
            true => Ok(Ending::Interrupted),
            false => timed.rest(self.context, |measured| judged.is_decided(measured)),
        };
        // A full disk does not take back what was counted.
        let (rest, trouble) = match rest {
            Ok(rest) => (rest, None),
            Err(error) => (Ending::Complete, Some(error)),
        };
        let measured = timed.measured;
        judged.check_outputs(&measured)?;
        let interrupted = rest == Ending::Interrupted;
        Ok(Evidence { outputs: measured.outputs(), measured, exact, interrupted, trouble })
    }
}
