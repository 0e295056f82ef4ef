//! The document of `heaptoll lab tailor`: what was learned, the classes, what was made and how to compare it.

use std::path::Path;

use heaptoll_report::document::{Document, Section, Table};
use heaptoll_report::format::shell_command;
use heaptoll_units::{number, part, whole_bytes};

use super::figures::TailorFigures;
use super::sentences;
use heaptoll_command::subject;

/// The whole document.
pub fn document(figures: &TailorFigures, trace: &Path) -> Document {
    let mut warnings = subject::warnings(&figures.subject, 0);
    if figures.subject.collector {
        warnings.push(
            "recorded over a collector, so its frees may not show real lifetimes; record over glibc"
                .to_owned(),
        );
    }
    let learned = Section { title: String::new(), text: sentences::learned(figures), items: Vec::new() };
    let mut command = vec!["heaptoll".to_owned(), "lab".into(), "tailor".into(), trace.display().to_string()];
    match &figures.object {
        Some(object) => command.extend(["-o".to_owned(), object.clone()]),
        None => command.extend(["--source".to_owned(), figures.source.clone()]),
    }
    Document {
        title: format!("An allocator for {}", figures.subject.program()),
        subtitle: subject::subtitle(&figures.subject),
        warnings,
        sections: [learned].into_iter().chain(classes(figures)).chain([made(figures)]).collect(),
        facts: subject::facts(&figures.subject, trace, figures.events),
        command: shell_command(&command),
        ..Document::default()
    }
}

fn classes(figures: &TailorFigures) -> Option<Section> {
    let table = Table::of(&figures.classes)
        .text("class", |class| whole_bytes(class.block_bytes))
        .figure("requests", |class| number(class.requests))
        .figure("of all", |class| part(class.requests, figures.requests))
        .figure("short lives", |class| part(class.short_lives, class.exact_requests))
        .figure("most live", |class| number(class.peak_blocks))
        .figure("their bytes", |class| whole_bytes(class.peak_blocks * class.block_bytes))
        .figure("chunk", |class| whole_bytes(class.chunk_bytes))
        .figure("mapped together", |class| {
            (class.populate_bytes > 0).then(|| whole_bytes(class.populate_bytes))
        })
        .note(
            "Short lives: freed or resized before 32 KiB are allocated. Pages of large classes are mapped in groups.",
        );
    Some(Section::new("Classes").with(table.if_any()?))
}

/// Which files were written, and what compares the allocator.
fn made(figures: &TailorFigures) -> Section {
    let source = format!("{} ({} lines of C)", figures.source, number(figures.source_lines));
    let text = match (&figures.object, &figures.compiler) {
        (Some(object), Some(compiler)) => vec![
            format!("{object} was compiled by {compiler} from {source}."),
            format!("Compare it: {}", compare(object, &figures.subject.command)),
        ],
        _ => vec![format!(
            "Only the source was written: {source}; the comment at its top says how to compile it."
        )],
    };
    Section { title: "Made".into(), text, items: Vec::new() }
}

/// The command that compares the object with the C library's allocator.
fn compare(object: &str, program: &[String]) -> String {
    let path = if object.contains('/') { object.to_owned() } else { format!("./{object}") };
    let words = ["heaptoll", "run", "-m", "glibc", "-m", &path, "--"].map(str::to_owned);
    shell_command(&words.into_iter().chain(program.iter().cloned()).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_to_compare_names_a_path() {
        let program = ["gawk".to_owned(), "{ print }".to_owned()];
        assert_eq!(compare("my.so", &program), "heaptoll run -m glibc -m ./my.so -- gawk '{ print }'");
        assert!(compare("/tmp/my.so", &program).contains("-m /tmp/my.so"));
    }

    #[test]
    fn without_an_object_the_document_names_the_source() {
        let figures = TailorFigures { source: "my.c".into(), source_lines: 700, ..TailorFigures::default() };
        let document = document(&figures, Path::new("t.heaptoll"));
        assert_eq!(document.command, "heaptoll lab tailor t.heaptoll --source my.c");
        assert!(document.sections.iter().all(|section| section.title != "Classes"));
        assert!(document.sections.iter().any(|section| section.text.join("").contains("Only the source")));
    }
}
