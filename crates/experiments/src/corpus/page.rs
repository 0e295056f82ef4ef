//! The page of a corpus that people read: `README.md` in its folder.

use heaptoll_report::format::{count, date, mib_from_bytes, plural, printable};
use heaptoll_units::and_list;

use super::figures::{Figures, Program};

/// The page.
pub fn text(corpus: &Figures) -> String {
    let programs: String = corpus.programs.iter().map(row).collect();
    let mut kernels: Vec<String> = corpus.programs.iter().map(where_recorded).collect();
    kernels.sort();
    kernels.dedup();
    format!(
        "# Recorded traces of {programs_count}\n\n\
         {events} events in {mib} MiB, begun on {date}, with call sites. Recorded {kernels}.\n\n\
         | program | events | MiB | processes | manager | what it does |\n|---|---|---|---|---|---|\n{programs}{missing}\n\
         `corpus.json` has for each program its command, the digests of all files that took part with their Debian \
         packages, and the machine. The form of a trace: docs/reference/trace-format.md of heaptoll.\n\n\
         ```\n\
         heaptoll lab corpus --check .                 (is it whole?)\n\
         heaptoll trace stat {first}\n\
         heaptoll trace replay {first} -m all            (each manager serves the same requests)\n\
         ```\n\n\
         ## What traces contain\n\
         {statement}\n\n\
         They also hold paths of executables and libraries, the processor's name and the kernel's version of the machine.\n",
        programs_count = plural(corpus.programs.len(), "program"),
        events = count(corpus.events() as f64),
        mib = mib_from_bytes(corpus.bytes() as f64),
        date = date(corpus.created_unix_s),
        kernels = and_list(&kernels),
        missing = missing(corpus),
        first = corpus.traces().next().map_or("TRACE", |trace| &trace.path),
        statement = corpus.license_statement,
    )
}

fn row(program: &Program) -> String {
    format!(
        "| {} ({}) | {} | {} | {} | {} {} | {} |\n",
        program.name,
        program.size,
        count(program.events() as f64),
        mib_from_bytes(program.bytes() as f64),
        program.traces.len(),
        program.manager,
        program.manager_version,
        printable(&program.about).replace('|', "\\|"),
    )
}

fn where_recorded(program: &Program) -> String {
    format!(
        "on {} under Linux {} by heaptoll {}",
        program.machine.cpu, program.machine.kernel, program.recorded_by
    )
}

fn missing(corpus: &Figures) -> String {
    if corpus.missing.is_empty() {
        return String::new();
    }
    let lines: String = corpus.missing.iter().map(|one| format!("- {}\n", printable(&one.why))).collect();
    format!("\nNot recorded:\n\n{lines}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::figures::{Missing, Trace};

    #[test]
    fn the_page_names_what_is_there_and_what_is_not() {
        let trace = Trace { path: "p.heaptoll".into(), bytes: 3 << 20, events: 12_345, ..Trace::default() };
        let program = Program {
            name: "p".into(),
            about: "does this | that".into(),
            traces: vec![trace],
            ..Program::default()
        };
        let missing = Missing { name: "q".into(), why: "q: install the package q".into() };
        let corpus = Figures { programs: vec![program], missing: vec![missing], ..Figures::default() };
        let page = text(&corpus);
        for expected in [
            "traces of 1 program",
            count(12_345.0).as_str(),
            "this \\| that",
            "install the package q",
            "stat p.heaptoll",
        ] {
            assert!(page.contains(expected), "{expected}: {page}");
        }
    }
}
