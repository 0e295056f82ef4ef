//! Histories written, read, drawn and refused; commits of made-up repositories.

use std::path::Path;
use std::process::Command;

use heaptoll_report::document::Item;

use super::*;
use crate::made_up;

fn commit(hash: &str, unix_s: i64) -> Commit {
    Commit { hash: hash.into(), unix_s: Some(unix_s), dirty: false }
}

#[test]
fn each_program_side_and_metric_is_a_row() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("history.db");
    check(&path).expect("can be made");
    let figures = made_up::figures();
    let dirty = Commit { hash: "b".repeat(40), unix_s: None, dirty: true };
    append(&path, &figures, &[[Some(commit("aaaa", 1)), Some(dirty.clone())]]).expect("writes");
    append(&path, &figures, &[]).expect("adds");
    check(&path).expect("can be added to");
    let rows = read(&path).expect("reads");
    assert_eq!(rows.len(), 12, "three metrics have figures, of two sides, in two gates");
    let of = |side: &str, metric: &str| {
        rows.iter().find(|row| row.side == side && row.metric == metric).cloned().expect("a row")
    };
    let instructions = of("new", "instructions");
    assert_eq!(
        (instructions.value, instructions.ratio, instructions.verdict.as_str()),
        (10_100_000.0, Some(1.01), "broken")
    );
    assert_eq!(instructions.commit, Some(dirty));
    let cpu = of("new", "cpu");
    assert_eq!((cpu.low, cpu.high, cpu.unit.as_str()), (Some(0.495), Some(0.515), "s"));
    assert_eq!((of("base", "cpu").low, of("base", "cpu").commit), (None, Some(commit("aaaa", 1))));
    assert_eq!(rows[6].commit, None);
}

#[test]
fn a_history_of_a_later_layout_is_refused_with_the_version() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("history.db");
    append(&path, &made_up::figures(), &[]).expect("writes");
    let file = rusqlite::Connection::open(&path).expect("opens");
    file.pragma_update(None, "user_version", 7).expect("a later layout");
    file.execute("UPDATE gate SET heaptoll = '99.1.0'", []).expect("a later version");
    drop(file);
    let before = std::fs::read(&path).expect("bytes");
    for error in [
        read(&path).expect_err("refused").to_string(),
        check(&path).expect_err("refused").to_string(),
        append(&path, &made_up::figures(), &[]).expect_err("refused").to_string(),
    ] {
        assert!(error.contains("layout 7") && error.contains("99.1.0"), "{error}");
    }
    assert_eq!(std::fs::read(&path).expect("bytes"), before);
}

#[test]
fn what_is_no_history_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = folder.path().join("text");
    std::fs::write(&text, "no database, and long enough to be taken for one by its size alone".repeat(20))
        .expect("writes");
    let other = folder.path().join("other.db");
    rusqlite::Connection::open(&other)
        .and_then(|file| file.execute_batch("CREATE TABLE t (x)"))
        .expect("a table");
    for path in [&text, &other, &folder.path().to_owned()] {
        let before = std::fs::read(path).ok();
        assert!(matches!(check(path), Err(HistoryError::Foreign { .. })), "{}", path.display());
        assert!(append(path, &made_up::figures(), &[]).is_err() && read(path).is_err());
        assert_eq!(std::fs::read(path).ok(), before);
    }
    let missing = folder.path().join("missing.db");
    assert!(matches!(read(&missing), Err(HistoryError::Missing(_))));
    assert!(!missing.exists());
}

#[test]
fn figures_are_drawn_over_commits_in_the_order_of_their_dates() {
    let row = |hash: &str, unix_s, value| HistoryRow {
        cpu: "a processor".into(),
        program: "parse".into(),
        side: "new".into(),
        metric: "instructions".into(),
        unit: "count".into(),
        value,
        verdict: "within".into(),
        commit: Some(commit(hash, unix_s)),
        ..HistoryRow::default()
    };
    let mut rows =
        vec![row("cccc", 300, 3.0), row("aaaa", 100, 1.0), row("bbbb", 200, 9.0), row("bbbb", 200, 2.0)];
    rows.push(HistoryRow { commit: None, ..row("", 0, 77.0) });
    let drawn = document(&rows, Path::new("history.db"));
    let [section] = &drawn.sections[..] else { panic!("one program") };
    let charts = section.items.iter().filter_map(|item| match item {
        Item::Chart(chart) => Some(chart.series[0].points.clone()),
        _ => None,
    });
    assert_eq!(charts.collect::<Vec<_>>(), [vec![(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]]);
    let Item::Table(table) = &section.items[0] else { panic!("a table") };
    assert_eq!(table.rows.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(), ["aaaa", "bbbb", "cccc"]);
    assert_eq!(section.text, ["1 gate of an unknown commit left out."]);
    rows[0].cpu = "another".into();
    let several = document(&rows, Path::new("history.db"));
    assert!(several.sections[0].text[1].contains("2 models"), "{:?}", several.sections[0].text);
}

fn git(folder: &Path, words: &[&str]) {
    let done = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"])
        .args(words)
        .output()
        .expect("git");
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn a_commit_has_hash_and_date_and_is_dirty_where_files_were_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(Commit::of_folder(folder.path()), None, "no repository");
    let (whole, shallow) = (folder.path().join("whole"), folder.path().join("shallow"));
    std::fs::create_dir(&whole).expect("a folder");
    git(&whole, &["init", "--quiet"]);
    assert_eq!(Commit::of_folder(&whole), None, "no commit");
    for text in ["one", "two"] {
        std::fs::write(whole.join("file"), text).expect("writes");
        git(&whole, &["add", "file"]);
        git(&whole, &["commit", "--quiet", "--message", text]);
    }
    std::fs::write(whole.join("untracked"), "x").expect("writes");
    let clean = Commit::of_folder(&whole).expect("a commit");
    assert!(clean.hash.len() == 40 && clean.unix_s.is_some_and(|date| date > 1_600_000_000) && !clean.dirty);
    let first = Commit::of_revision(&whole, "HEAD~1").expect("the first");
    assert_ne!(first.hash, clean.hash);
    std::fs::write(whole.join("file"), "changed").expect("writes");
    assert_eq!(Commit::of_folder(&whole), Some(Commit { dirty: true, ..clean.clone() }));
    let from = format!("file://{}", whole.display());
    git(folder.path(), &["clone", "--quiet", "--depth=1", &from, "shallow"]);
    assert_eq!(Commit::of_folder(&shallow), Some(clean));
    assert_eq!(Commit::of_revision(&shallow, "HEAD~1"), None);
    assert_eq!(Commit::of_hash(&shallow, &first.hash, false), Commit { unix_s: None, ..first });
    assert_eq!(Commit::of_revision(&whole, "--help"), None);
}
