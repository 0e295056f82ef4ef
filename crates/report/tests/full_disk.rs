//! A disk that becomes full in the middle of a file leaves nothing of it.
//!
//! In a process of its own, since a limit on file sizes holds for a whole process, and other tests write files.

use std::process::Command;

use heaptoll_report::experiment::{Extras, document as of_experiment};
use heaptoll_report::flat_table::FlatTable;
use heaptoll_report::testing::{Shape, experiment, studies};
use heaptoll_report::{ReportError, csv, files, html, json, markdown, parquet};

/// Set for that process.
const LIMITED: &str = "HEAPTOLL_TEST_LIMITED";
/// Smaller than any of the outputs below.
const LIMIT: u64 = 4096;

/// Writes one of the outputs to a path.
type Writer<'a> = &'a dyn Fn(&std::path::Path) -> Result<(), ReportError>;

/// Sets the soft limit on file sizes of this process.
fn limit_file_size(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: both calls take plain values, `limit` outlives its call, and no other thread of this test runs yet.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
    }
}

#[test]
fn nothing_half_written_stays() {
    if std::env::var_os(LIMITED).is_none() {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "full_disk::nothing_half_written_stays"]).env(LIMITED, "1");
        let output = again.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let old = folder.path().join("old.json");
    std::fs::write(&old, "measured last week").unwrap();
    let (experiment, comparison) = experiment(Shape::Suite);
    let document = studies();
    let outputs: [(&str, Writer); 6] = [
        ("old.json", &|path| files::write_atomically(path, |out| json::write(&experiment, &comparison, out))),
        ("new.json", &|path| files::write_atomically(path, |out| json::write(&experiment, &comparison, out))),
        ("new.csv", &|path| {
            files::write_atomically(path, |out| csv::write(FlatTable::of_runs(&experiment), out))
        }),
        ("new.parquet", &|path| {
            files::write_atomically(path, |out| parquet::write(FlatTable::of_runs(&experiment), out))
        }),
        ("new.md", &|path| {
            let text = markdown::render(&document);
            files::write_atomically(path, |out| {
                out.write_all(text.as_bytes())
                    .map_err(|source| ReportError::Stream { form: "Markdown", source })
            })
        }),
        ("new.html", &|path| {
            let page = html::document::render(&of_experiment(&experiment, &comparison, Extras::default()))?;
            files::write_atomically(path, |out| {
                out.write_all(page.as_bytes()).map_err(|source| ReportError::Stream { form: "HTML", source })
            })
        }),
    ];
    // The limit holds for the harness too, whose own output may be a long file: so it is lifted before anything is
    // printed.
    limit_file_size(LIMIT);
    let written = outputs.map(|(name, write)| (name, write(&folder.path().join(name))));
    limit_file_size(libc::RLIM_INFINITY);
    for (name, result) in written {
        let path = folder.path().join(name);
        let error = result.expect_err(name);
        let text = error.to_string();
        assert!(matches!(error, ReportError::File { .. }), "{text}");
        assert!(text.contains(path.to_str().unwrap()) && text.contains("ulimit -f"), "{text}");
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["old.json"]);
    assert_eq!(std::fs::read_to_string(&old).unwrap(), "measured last week");
}
