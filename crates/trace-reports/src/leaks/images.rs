//! The process images of a command: which of them are requested, which is shown, and what each lost.

use heaptoll_report::document::Section;
use heaptoll_report::format::{NONE, printable};
use heaptoll_trace_analysis::leaks::LeakFigures as Figures;
use heaptoll_units::whole_bytes;

use heaptoll_command::tables::table_item;

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
    let rows = sorted.iter().take(LISTED).map(|figures| {
        let [lost, possible, never_freed] = weight(figures).map(whole_bytes);
        let judged = |text| if figures.judged_at_bytes.is_some() { text } else { NONE.to_owned() };
        let program = printable(figures.subject.program());
        vec![program, figures.subject.pid.to_string(), judged(lost), judged(possible), never_freed]
    });
    let columns = ["program", "process", "definitely and indirectly lost", "possibly lost", "never freed"];
    let caption =
        if all.len() > LISTED { format!("the worst {LISTED} of {}", all.len()) } else { String::new() };
    Some(Section {
        title: "Process images".to_owned(),
        text: vec!["`--process` with a program or a process number shows another one.".to_owned()],
        items: table_item(&caption, &columns, rows.collect()).into_iter().collect(),
    })
}
