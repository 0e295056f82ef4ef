//! The process images of a command: which of them are requested, which is shown, and what each lost.

use heaptoll_report::document::{Section, Table};
use heaptoll_report::format::printable;
use heaptoll_trace_analysis::leaks::LeakFigures as Figures;
use heaptoll_units::whole_bytes;

/// Images listed.
const LISTED: usize = 20;

/// Whether this image is the one that `process` names: by its number, or by the file name of its program.
pub fn is_named(figures: &Figures, process: &str) -> bool {
    let subject = &figures.subject;
    let exe = subject.exe.rsplit('/').next();
    subject.pid.to_string() == process || subject.program() == process || exe == Some(process)
}

/// By what one image is worse than another.
pub fn weight(figures: &Figures) -> [u64; 3] {
    let kinds = &figures.kinds;
    [kinds.definite.plus(kinds.indirect).bytes, kinds.possible.bytes, kinds.never_freed().bytes]
}

/// One image in words: `bash (process 4711)`.
pub fn name(figures: &Figures) -> String {
    format!("{} (process {})", printable(figures.subject.program()), figures.subject.pid)
}

/// What each image lost, worst first; none where there is one image.
pub fn section(all: &[&Figures]) -> Option<Section> {
    if all.len() < 2 {
        return None;
    }
    let mut sorted = all.to_vec();
    sorted.sort_by_key(|figures| std::cmp::Reverse(weight(figures)));
    let of = |figures: &Figures, at: usize| whole_bytes(weight(figures)[at]);
    let judged = |figures: &Figures, at: usize| figures.judged_at_bytes.map(|_| of(figures, at));
    let caption =
        if all.len() > LISTED { format!("the worst {LISTED} of {}", all.len()) } else { String::new() };
    let table = Table::of(sorted.into_iter().take(LISTED))
        .caption(caption)
        .text("program", |figures| printable(figures.subject.program()))
        .figure("process", |figures| figures.subject.pid.to_string())
        .figure("definitely and indirectly lost", |figures| judged(figures, 0))
        .figure("possibly lost", |figures| judged(figures, 1))
        .figure("never freed", |figures| of(figures, 2));
    let text = "`--process` with a program or a process number shows another one.";
    Some(Section::new("Process images").state(text).with(table))
}
