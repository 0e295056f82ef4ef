//! The document of `heaptoll leaks`.

use std::path::Path;

use heaptoll_report::document::{Document, Section};
use heaptoll_report::format::{printable, shell_command};
use heaptoll_trace_analysis::leaks::LeakFigures as Figures;
use heaptoll_units::{objects, whole_bytes};

use super::{images, sections, sentence};
use heaptoll_command::subject;

/// The whole document of one of all process images; `command` makes it again.
pub fn document(figures: &Figures, all: &[&Figures], trace: &Path, command: &str) -> Document {
    let text = [Some(sentence::worst(figures)), sentence::growth(figures)].into_iter().flatten();
    let first = Section {
        text: text.chain(sections::hints(figures)).collect(),
        items: sections::kinds(figures),
        ..Section::default()
    };
    let sections = [
        Some(first),
        sections::definite(figures),
        sections::possible(figures),
        sections::growing(figures),
        sections::idle(figures),
        sections::reachable(figures),
        sections::freed_last(figures),
        sections::unjudged(figures),
        sections::kept(figures),
        images::section(all),
    ];
    let ended = figures.subject.ended.clone();
    let mut facts = subject::facts(&figures.subject, trace, 0);
    facts.retain(|(name, _)| name != "events");
    facts.push(("ended".into(), ended.unwrap_or_else(|| "unknown: the trace is cut off".into())));
    Document {
        title: format!("What leaks in {}", printable(figures.subject.program())),
        subtitle: format!(
            "{}: {}, {} allocated, under {}",
            printable(&shell_command(&figures.subject.command)),
            objects(figures.allocated.objects),
            whole_bytes(figures.allocated.bytes),
            printable(subject::manager_name(&figures.subject.manager))
        ),
        warnings: warnings(figures),
        sections: sections.into_iter().flatten().collect(),
        facts,
        command: command.to_owned(),
        ..Document::default()
    }
}

fn warnings(figures: &Figures) -> Vec<String> {
    let mut warnings = subject::warnings(&figures.subject, figures.misfits);
    match figures.judged_at_bytes {
        None if figures.pointers => warnings.push(
            "no root point is complete, so lost objects are unknown (the trace is cut, or the program was killed)"
                .to_owned(),
        ),
        Some(at) if figures.goes_on => warnings.push(format!(
            "the last root point is at {} of {} allocated, not at the program's end: objects touched or allocated \
             since then count as reachable",
            whole_bytes(at),
            whole_bytes(figures.clock_bytes)
        )),
        _ => {}
    }
    let unjudged = figures.kinds.unjudged;
    if figures.judged_at_bytes.is_some() && unjudged.objects > 0 {
        warnings.push(format!(
            "{} ({}) may have been freed or lost while events are missing: they count as roots, without a kind",
            objects(unjudged.objects),
            whole_bytes(unjudged.bytes)
        ));
    }
    warnings
}
