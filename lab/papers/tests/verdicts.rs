//! The table of mended verdicts against the stored figures: what it has of either test is what the tool makes of them.

use std::collections::BTreeSet;
use std::path::Path;

use heaptoll_papers::bundled::all;
use heaptoll_papers::definition::{Claim, Test};
use heaptoll_papers::page::book::abstracts;
use heaptoll_papers::results::{PaperResult, Results};
use heaptoll_papers::stored;
use heaptoll_papers::verdict::Answer;
use heaptoll_report::markdown;

const PAGE: &str = "verdicts.md";
/// Stored runs: the date by which the page names them, and the files, each a part of the run.
const RUNS: [(&str, &[&str]); 4] = [
    ("2026-11-22", &["study-2026-11-22.json.xz"]),
    ("2026-11-25", &["study-last.json.xz"]),
    ("2026-11-27", &["study-mimalloc-2026-11-27.json.xz"]),
    (
        "2026-11-29",
        &[
            "published/zorn-detlefs-times.json.xz",
            "published/zorn-detlefs-exact.json.xz",
            "published/boehm-mimalloc-times.json.xz",
            "published/boehm-exact.json.xz",
            "published/sareen-reclamation-times.json.xz",
            "published/sareen-frequency.json.xz",
            "published/sareen-frequency-more.json.xz",
            "published/sareen-reclamation-exact.json.xz",
            "published/zorn-memory-system.json.xz",
        ],
    ),
];
/// Between these the page has what `WRITE_DOCS=1` of this test writes: the papers' abstracts with today's answers, how
/// many claims each run decides, and which the newest leaves open.
const WRITTEN: [[&str; 2]; 3] = [
    [
        "<!-- The abstracts are written by `WRITE_DOCS=1` of the tests of heaptoll-papers. -->\n",
        "<!-- End of the abstracts. -->",
    ],
    [
        "<!-- The counts are written by `WRITE_DOCS=1` of the tests of heaptoll-papers. -->\n",
        "<!-- End of the counts. -->",
    ],
    [
        "<!-- The open claims are written by `WRITE_DOCS=1` of the tests of heaptoll-papers. -->\n",
        "<!-- End of the open claims. -->",
    ],
];
/// The year of Boehm's slides, whose title has none.
const OF_THE_SLIDES: u32 = 1999;
/// What a sentence of an abstract has if one of its claims was measured.
const ANSWERS: [&str; 3] = ["confirmed", "contradicted", "not decided"];
/// Cells of a mended claim that are written by hand; then come its verdicts, then and now, by the first two runs or by the
/// one that is published.
const BY_HAND: usize = 4;

/// A stored run as it was judged then, and by the claims of today.
struct Judged {
    date: &'static str,
    then: Results,
    now: Results,
}

fn judged() -> Vec<Judged> {
    let studies = all().expect("studies");
    let part = |file: &&str| {
        (file.to_string(), stored::results(&results_folder().join(file)).expect("stored results"))
    };
    let run = |(date, files): (_, &[&str])| {
        let mut parts: Vec<(String, Results)> = files.iter().map(part).collect();
        let first = parts.remove(0).1;
        // Joining judges again.
        let then = match parts.is_empty() {
            true => first,
            false => Results::joined(first, parts).expect("parts of one run"),
        };
        Judged { date, now: then.clone().judged_again(&studies), then }
    };
    RUNS.map(run).into()
}

fn results_folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results")
}

/// The verdict on a claim, in a word.
fn verdict(results: &Results, study: &str, claim: &str) -> Option<&'static str> {
    let paper = results.papers.iter().find(|paper| paper.study.name == study)?;
    paper.verdicts.iter().find(|verdict| verdict.claim == claim).map(|verdict| verdict.answer.label())
}

/// ` †` where a claim is not tested today as it was when the run was made, or was made since.
fn dagger(run: &Judged, study: &str, claim: &str) -> &'static str {
    let tests = |results: &Results| -> Option<(Option<String>, Vec<Test>)> {
        let paper = results.papers.iter().find(|paper| paper.study.name == study)?;
        let claim: &Claim = paper.study.claims.iter().find(|one| one.id == claim)?;
        let tests = claim.tests.iter().map(|test| Test { words: String::new(), ..test.clone() });
        Some((claim.seen_on.clone(), tests.collect()))
    };
    if tests(&run.then) == tests(&run.now) { "" } else { " †" }
}

/// A row of an abstract, marked where one of its claims is.
fn marked(row: &str, run: &Judged) -> String {
    let is_mended = |paper: &PaperResult| {
        let sentence = paper.study.summary.iter().find(|one| row.starts_with(&format!("| {} |", one.words)));
        let mut claims = sentence.iter().flat_map(|sentence| &sentence.claims);
        claims.any(|claim| !dagger(run, &paper.study.name, claim).is_empty())
    };
    let cells: Vec<&str> = row.splitn(3, " | ").collect();
    match cells[..] {
        [words, today, rest] if run.now.papers.iter().any(is_mended) => {
            format!("{words} | {today} † | {rest}")
        }
        _ => row.into(),
    }
}

/// A line of the page; of a mended claim with the verdicts of the runs.
fn line(text: &str, runs: &[Judged]) -> String {
    let cells: Vec<&str> = text.trim_matches('|').split(" | ").map(str::trim).collect();
    let claim = cells[0].split_once(" `").and_then(|(study, rest)| Some((study, rest.split_once('`')?.0)));
    let of: &[Judged] = match cells.len().checked_sub(BY_HAND) {
        Some(4) => &runs[..2],
        Some(2) => &runs[3..4],
        _ => return text.into(),
    };
    let Some((study, claim)) = claim.filter(|_| text.starts_with("| ")) else { return text.into() };
    assert!(of[0].then.papers.iter().any(|paper| paper.study.name == study), "{text}");
    let of_run = |run: &Judged| {
        let then = verdict(&run.then, study, claim);
        [then.unwrap_or("–"), verdict(&run.now, study, claim).unwrap_or("dropped")]
    };
    let verdicts: Vec<&str> = of.iter().flat_map(of_run).collect();
    format!("| {} | {} |", cells[..BY_HAND].join(" | "), verdicts.join(" | "))
}

/// The papers' abstracts, each with the answers of the newest run of its own.
fn abstracts_of(runs: &[Judged]) -> String {
    let mut papers: Vec<(String, String)> = Vec::new();
    for run in runs.iter().rev() {
        let page = markdown::render(&abstracts(&run.now)).replace("\n### ", "\n## ");
        for section in page.split("\n## ").skip(1) {
            let (title, table) = section.trim().split_once('\n').expect("a title and a table");
            if papers.iter().all(|(other, _)| other != title) && ANSWERS.iter().any(|one| table.contains(one))
            {
                let rows: Vec<String> = table.lines().map(|row| marked(row, run)).collect();
                papers.push((title.into(), format!("By the run of {}.\n{}", run.date, rows.join("\n"))));
            }
        }
    }
    papers.sort_by_key(|(title, _)| {
        let year = title.split(|c: char| !c.is_ascii_digit()).find_map(|word| word.parse::<u32>().ok());
        year.unwrap_or(OF_THE_SLIDES)
    });
    papers.iter().map(|(title, table)| format!("\n## {title}\n{table}\n")).collect()
}

/// How many claims each run decides, then and now, those of ours apart.
fn counts(runs: &[Judged]) -> String {
    let mut rows = String::from(
        "| run | claims of | hold | fail | not decided | not measured | † |\n|---|---|---|---|---|---|---|\n",
    );
    for run in runs {
        let ours: BTreeSet<(&str, &str)> = run.now.papers.iter().flat_map(ours_of).collect();
        let mut row = |name: &str, of: &dyn Fn(&str, &str) -> bool| {
            let count = |results: &Results, answer: Answer| {
                let all = results.papers.iter().flat_map(|paper| &paper.verdicts);
                all.filter(|one| one.answer == answer && of(&one.study, &one.claim)).count()
            };
            let cell =
                |answer: &Answer| format!("{} → {}", count(&run.then, *answer), count(&run.now, *answer));
            let answers = [Answer::Holds, Answer::Fails, Answer::Undecided, Answer::NotMeasured];
            let cells: Vec<String> = answers.iter().map(cell).collect();
            let all = run.now.papers.iter().flat_map(|paper| &paper.verdicts);
            let of_row = all.filter(|one| of(&one.study, &one.claim));
            let mended = of_row.filter(|one| !dagger(run, &one.study, &one.claim).is_empty()).count();
            rows += &format!("| {} | {name} | {} | {mended} |\n", run.date, cells.join(" | "));
        };
        for paper in &run.now.papers {
            row(&paper.study.name, &|study, claim| {
                study == paper.study.name && !ours.contains(&(study, claim))
            });
        }
        row("ours", &|study, claim| ours.contains(&(study, claim)));
    }
    rows
}

/// The papers' claims that the newest run of each leaves open, with the reason.
fn open_claims(runs: &[Judged]) -> String {
    let mut rows = String::from("| claim | why it is open, and what would decide it |\n|---|---|\n");
    let mut papers = BTreeSet::new();
    for run in runs.iter().rev() {
        for paper in &run.now.papers {
            let measured = paper.verdicts.iter().any(|verdict| verdict.answer != Answer::NotMeasured);
            if !measured || !papers.insert(paper.study.name.as_str()) {
                continue;
            }
            let open = paper.verdicts.iter().filter(|one| one.answer == Answer::Undecided && !one.ours);
            rows.extend(open.map(|one| {
                let mark = dagger(run, &one.study, &one.claim);
                format!("| {} `{}`{mark} | {} |\n", one.study, one.claim, one.reason)
            }));
        }
    }
    rows
}

fn ours_of(paper: &PaperResult) -> impl Iterator<Item = (&str, &str)> {
    let name = paper.study.name.as_str();
    paper.study.claims.iter().filter(|claim| claim.ours).map(move |claim| (name, claim.id.as_str()))
}

#[test]
fn the_page_of_mended_verdicts_is_what_the_stored_figures_give() {
    let (file, runs) = (results_folder().join(PAGE), judged());
    let page = std::fs::read_to_string(&file).expect("the page");
    let lines: Vec<String> = page.lines().map(|text| line(text, &runs)).collect();
    let mut expected = lines.join("\n") + "\n";
    for ([begin, end], text) in
        WRITTEN.into_iter().zip([abstracts_of(&runs), counts(&runs), open_claims(&runs)])
    {
        let (before, rest) = expected.split_once(begin).expect("where it begins");
        let (_, after) = rest.split_once(end).expect("where it ends");
        expected = format!("{before}{begin}{text}{end}{after}");
    }
    if std::env::var_os("WRITE_DOCS").is_some() {
        std::fs::write(&file, &expected).expect("the page");
    } else {
        assert!(page == expected, "{PAGE} is not what the stored figures give; WRITE_DOCS=1 writes it");
    }
}
