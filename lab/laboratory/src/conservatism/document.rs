//! The document of `heaptoll lab conservatism`.

use std::path::Path;

use heaptoll_report::document::Document;
use heaptoll_report::format::{printable, shell_command};
use heaptoll_units::number;

use heaptoll_graphs::conservatism::ConservatismFigures as Figures;

use super::sections;

/// The whole document.
pub fn document(figures: &Figures, trace: &Path) -> Document {
    let program = figures.command.first().map(String::as_str).unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or(program);
    let measured = match figures.points.is_empty() {
        true => vec![sections::no_points()],
        false => vec![
            sections::levels(figures),
            sections::causes(figures),
            sections::interior(figures),
            sections::ends(figures),
        ],
    };
    Document {
        title: format!("What conservatism costs {}", printable(name)),
        subtitle: format!(
            "under {}, {} root points, {} objects",
            printable(&figures.manager),
            number(figures.points.len() as u64),
            number(figures.objects)
        ),
        warnings: sections::hidden_warning(figures).into_iter().chain(figures.warnings.clone()).collect(),
        sections: measured,
        facts: vec![
            ("trace".into(), trace.display().to_string()),
            ("command".into(), shell_command(&figures.command)),
            ("ended".into(), figures.ended.clone().unwrap_or_else(|| "unknown: the trace is cut off".into())),
        ],
        command: shell_command(&["heaptoll", "lab", "conservatism", &trace.display().to_string()]),
        ..Document::default()
    }
}
