//! Callgrind's text of exact counts, so that KCachegrind and callgrind_annotate show what `heaptoll exact instructions` and
//! `heaptoll exact locality` counted: a file for each program and manager, a function for each routine or accessor.

use std::path::{Path, PathBuf};

use heaptoll_report::format::printable;
use heaptoll_report::{ReportError, files};

use crate::failure::Failure;
use crate::writable;

/// What a function has. Figures are in the order of [`CallgrindFile::events`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Function {
    /// Path of the file that it is in; empty when unknown.
    pub object: String,
    /// Its name.
    pub name: String,
    /// Its own figures.
    pub own: Vec<u64>,
    /// What it calls: an index of [`CallgrindFile::functions`], how often, and the figures of these calls.
    pub calls: Vec<(usize, u64, Vec<u64>)>,
}

/// A file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallgrindFile {
    /// The program's name.
    pub program: String,
    /// The manager's.
    pub manager: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// What the reader must know, a line each.
    pub descriptions: Vec<String>,
    /// Names without spaces, and titles.
    pub events: Vec<(String, String)>,
    /// All functions. Their own figures add up to those of the run.
    pub functions: Vec<Function>,
}

impl CallgrindFile {
    /// The text.
    pub fn text(&self) -> String {
        let mut lines =
            vec!["# callgrind format".to_owned(), "version: 1".into(), "creator: heaptoll".into()];
        lines.push(format!("cmd: {}", printable(&self.command.join(" "))));
        lines.extend(self.descriptions.iter().map(|text| format!("desc: {}", printable(text))));
        lines.push("positions: line".into());
        lines.extend(self.events.iter().map(|(name, title)| format!("event: {name} : {title}")));
        let names: Vec<&str> = self.events.iter().map(|(name, _)| name.as_str()).collect();
        lines.push(format!("events: {}", names.join(" ")));
        let mut sum = vec![0_u64; self.events.len()];
        for function in &self.functions {
            for (sum, own) in sum.iter_mut().zip(&function.own) {
                *sum = sum.saturating_add(*own);
            }
        }
        lines.push(format!("summary: {}", shown(&sum)));
        for function in &self.functions {
            self.function(function, &mut lines);
        }
        lines.push(String::new());
        lines.join("\n")
    }

    fn function(&self, function: &Function, lines: &mut Vec<String>) {
        lines.extend([
            String::new(),
            format!("ob={}", named(&function.object)),
            "fl=???".into(),
            format!("fn={}", named(&function.name)),
            format!("0 {}", shown(&function.own)),
        ]);
        for (called, count, figures) in &function.calls {
            let Some(called) = self.functions.get(*called) else { continue };
            lines.extend([
                format!("cob={}", named(&called.object)),
                format!("cfn={}", named(&called.name)),
                format!("calls={count} 0"),
                format!("0 {}", shown(figures)),
            ]);
        }
    }

    /// Writes the file into a folder, under a name of the program and the manager, and replaces an older one.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, ReportError> {
        let path = path(folder, &self.program, &self.manager);
        files::write_atomically(&path, |out| {
            out.write_all(self.text().as_bytes())
                .map_err(|source| ReportError::Stream { form: "callgrind's format", source })
        })?;
        Ok(path)
    }
}

/// Refuses a folder in which no file can be made, before time is spent.
///
/// # Errors
/// It is none, or does not let us write.
pub fn check(folder: &Path) -> Result<(), Failure> {
    let refused =
        |why| Failure::Usage(format!("cannot write callgrind's files to {}: {why}", folder.display()));
    writable::check(&path(folder, "program", "manager")).map_err(refused)
}

fn path(folder: &Path, program: &str, manager: &str) -> PathBuf {
    let plain = |name: &str| printable(name).replace(['/', ' '], "_");
    folder.join(format!("callgrind.out.{}.{}", plain(program), plain(manager)))
}

fn shown(figures: &[u64]) -> String {
    figures.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

fn named(name: &str) -> String {
    if name.is_empty() { "???".to_owned() } else { printable(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_add_up_and_names_stay_on_their_lines() {
        let file = CallgrindFile {
            command: vec!["a\nb".into(), "c".into()],
            descriptions: vec!["under glibc".into()],
            events: vec![("Ir".into(), "instructions".into()), ("Dr".into(), "loads".into())],
            functions: vec![
                Function {
                    name: "program".into(),
                    own: vec![100, 10],
                    calls: vec![(1, 3, vec![30, 9])],
                    ..Function::default()
                },
                Function {
                    object: "/lib/x.so".into(),
                    name: "malloc".into(),
                    own: vec![30, 9],
                    calls: vec![],
                },
            ],
            ..CallgrindFile::default()
        };
        let text = file.text();
        assert!(text.contains("\nevents: Ir Dr\nsummary: 130 19\n"), "{text}");
        assert!(
            text.contains("\nfn=program\n0 100 10\ncob=/lib/x.so\ncfn=malloc\ncalls=3 0\n0 30 9\n"),
            "{text}"
        );
        assert!(!text.contains("a\nb"), "{text}");
        let name = path(Path::new("/f"), "my prog", "./libx.so");
        assert_eq!(name, Path::new("/f/callgrind.out.my_prog.._libx.so"));
    }
}
