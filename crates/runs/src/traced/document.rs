//! What the documents on traced programs share: a part for each program, with its warnings.

use heaptoll_report::document::{Document, Section};
use heaptoll_report::format::shell_command;

/// What a document shows of one program.
pub struct Shown<'a> {
    /// Its name.
    pub program: &'a str,
    /// Its command.
    pub command: &'a [String],
    /// Reasons to doubt its figures.
    pub warnings: Vec<String>,
    /// Tables and charts.
    pub sections: Vec<Section>,
}

/// The document on these programs. Where there are several, each warning and section has its program's name.
pub fn document(title: String, complete: bool, programs: Vec<Shown>) -> Document {
    let subtitle = match &programs[..] {
        [one] => shell_command(one.command),
        many => many.iter().map(|one| one.program).collect::<Vec<_>>().join(", "),
    };
    let several = programs.len() > 1;
    let (mut warnings, mut sections) = (Vec::new(), Vec::new());
    if !complete {
        warnings.push("interrupted: not all runs were made".to_owned());
    }
    for one in programs {
        let named = |text: String| if several { format!("{}: {text}", one.program) } else { text };
        warnings.extend(one.warnings.into_iter().map(named));
        let own = one.sections.into_iter();
        sections.extend(own.map(|section| Section { title: named(section.title), ..section }));
    }
    warnings.dedup();
    Document { title, subtitle, warnings, sections, ..Document::default() }
}

/// Why a manager has no figures or not all, then the other warnings about it, each after its name.
pub fn warnings_of(manager: &str, problem: Option<&String>, warnings: &[String]) -> Vec<String> {
    let others = warnings.iter().filter(|text| problem != Some(*text));
    problem.into_iter().chain(others).map(|text| format!("{manager}: {text}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_programs_each_warning_and_section_has_its_programs_name() {
        let (command, problem) = (["gawk".to_owned()], Some("killed".to_owned()));
        let one = |program| Shown {
            program,
            command: &command,
            warnings: warnings_of("glibc", problem.as_ref(), &["killed".into(), "old".into()]),
            sections: vec![Section { title: "Calls".into(), ..Section::default() }],
        };
        let titles = |of: &Document| of.sections.iter().map(|it| it.title.clone()).collect::<Vec<_>>();
        let alone = document("t".into(), true, vec![one("gawk")]);
        assert_eq!((alone.subtitle.as_str(), titles(&alone)), ("gawk", vec!["Calls".to_owned()]));
        assert_eq!(alone.warnings, ["glibc: killed", "glibc: old"]);
        let both = document("t".into(), false, vec![one("gawk"), one("perl")]);
        assert_eq!((both.subtitle.as_str(), titles(&both)[1].as_str()), ("gawk, perl", "perl: Calls"));
        assert!(both.warnings[0].starts_with("interrupted") && both.warnings[1] == "gawk: glibc: killed");
    }
}
