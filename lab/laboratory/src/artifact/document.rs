//! What is shown of an artifact: what of it is here, and how its verdicts fared.

use heaptoll_experiment::comparison::Metric;
use heaptoll_report::document::{Cell, Document, Section, Table, Tone};
use heaptoll_report::format::{NONE, TOO_FEW, and_list, date, plural};

use super::check::{Checked, FileHere, PackageHere};
use super::description::Description;
use super::packages::OnMirror;
use super::verdicts::{Agreement, Verdict};

/// What of an artifact is on this machine.
pub fn of_check(checked: &Checked) -> Document {
    let described = &checked.described;
    let contents = described.contents.len() + 1;
    let mut warnings: Vec<String> = checked.machine.clone();
    warnings.extend(changed_since(described));
    Document {
        title: title(described),
        subtitle: format!("made by heaptoll {} · whole: {}", described.heaptoll, plural(contents, "file")),
        warnings,
        sections: vec![files(checked), packages(checked)],
        facts: machine(described),
        ..Document::default()
    }
}

/// Where it was measured; of shards the first machine.
fn machine(described: &Description) -> Vec<(String, String)> {
    let machine = &described.experiment.machine;
    let facts = [("processor", &machine.cpu), ("kernel", &machine.kernel), ("system", &machine.distribution)];
    facts.into_iter().map(|(name, text)| (name.to_owned(), text.clone())).collect()
}

fn title(described: &Description) -> String {
    let names: Vec<String> =
        described.experiment.programs.iter().map(|program| program.name.clone()).collect();
    let names = if names.len() <= 4 { and_list(&names) } else { plural(names.len(), "program") };
    format!("Artifact of {} ({names})", date(described.experiment.created_unix_s))
}

/// Digests that were taken after the measurement prove nothing about a file that changed in between.
fn changed_since(described: &Description) -> Option<String> {
    let changed = described.files.iter().filter(|file| file.changed_since);
    let names: Vec<String> = changed.map(|file| file.file.path.clone()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "changed or installed after the experiment began, so perhaps not what was measured: {}",
            and_list(&names)
        )
    })
}

fn files(checked: &Checked) -> Section {
    let all = checked.files.len();
    let same = all - checked.others().count();
    let mut text =
        vec![format!("{same} of {} that took part are here with the same SHA-256.", plural(all, "file"))];
    text.extend(generated_again(checked));
    let here = |here: &FileHere| match here {
        FileHere::Same => Cell::text("the same"),
        FileHere::Differs => Cell::text("differs").toned(Tone::More),
        FileHere::Missing => Cell::text("missing").toned(Tone::More),
    };
    let table = Table::of(checked.others())
        .text("file", |(file, _)| file.file.path.clone())
        .text("what it is", |(file, _)| file.file.role.as_str())
        .text("package", |(file, _)| file.package.clone())
        .text("here", |(_, found)| here(found));
    let table = (same < all).then(|| table.wide());
    Section { text, ..Section::new("Files") }.with_all(table)
}

/// What becomes of missing inputs that heaptoll generates.
fn generated_again(checked: &Checked) -> Option<String> {
    let missing = checked.others().filter(|(_, here)| *here == FileHere::Missing);
    let inputs = missing.filter(|(file, _)| file.is_generated_input()).count();
    (inputs > 0).then(|| format!("Of the missing files, `replay` generates {}.", plural(inputs, "input")))
}

fn packages(checked: &Checked) -> Section {
    let mirror = |found: &&PackageHere| {
        let (text, tone) = match &found.mirror {
            OnMirror::Has => ("has it".to_owned(), Tone::Same),
            OnMirror::Lost(others) if others.is_empty() => ("no longer has it".to_owned(), Tone::More),
            OnMirror::Lost(others) => (format!("no longer has it, but {}", and_list(others)), Tone::More),
            OnMirror::Unknown => ("unknown".to_owned(), Tone::Dim),
        };
        Cell::text(text).toned(tone)
    };
    let here = |found: &&PackageHere| match &found.here {
        Some(version) if *version == found.package.version => Cell::text("the same"),
        Some(version) => Cell::text(version).toned(Tone::More),
        None => Cell::text("not installed").toned(Tone::More),
    };
    let table = Table::of(&checked.packages)
        .text("package", |found| found.package.name.clone())
        .text("version", |found| found.package.version.clone())
        .text("here", here)
        .text("mirror", mirror);
    let mut text = Vec::new();
    if checked.packages.is_empty() {
        text.push("None of the files is of a Debian package that is known.".into());
    } else if checked.packages.iter().all(|found| found.mirror == OnMirror::Unknown) {
        text.push(
            "No package lists are here, so what a mirror has is unknown: `apt-get update` gets them.".into(),
        );
    }
    let table = (!checked.packages.is_empty()).then(|| table.wide());
    Section { text, ..Section::new("Debian packages") }.with_all(table)
}

/// How the verdicts fared; `left_out` has a sentence on each program that was not compared.
pub fn of_verdicts(found: &[Verdict], left_out: Vec<String>) -> Document {
    let count = |agreement| found.iter().filter(|verdict| verdict.agreement == agreement).count();
    let parts = [
        (Agreement::Confirmed, "confirmed"),
        (Agreement::Contradicted, "contradicted"),
        (Agreement::OnlyThen, "claimed only in the artifact"),
        (Agreement::OnlyNow, "claimed only now"),
        (Agreement::NoDifference, "without a difference in either"),
        (Agreement::TooFew, "with too few repetitions"),
        (Agreement::Missing, "not measured again"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(agreement, _)| count(*agreement) > 0)
        .map(|(agreement, words)| format!("{} {words}", count(agreement)))
        .collect();
    let verdict = |verdict: &&Verdict| {
        let (words, tone) = words(verdict.agreement);
        Cell::text(words).toned(tone)
    };
    let table = Table::of(found)
        .text("program", |verdict| verdict.program.clone())
        .text("manager", |verdict| verdict.stack.clone())
        .text("of", |verdict| if verdict.metric == Metric::Cpu { "CPU" } else { "memory" })
        .figure("in the artifact", |verdict| Cell::ratio(verdict.then.as_ref(), NONE))
        .figure("now", |verdict| Cell::ratio(verdict.now.as_ref(), "not measured"))
        .text("verdict", verdict);
    Document {
        title: format!("{}: {}", plural(found.len(), "verdict"), and_list(&parts)),
        subtitle:
            "Ratios to the baseline. A verdict is contradicted if one side claims more and the other less."
                .into(),
        warnings: left_out
            .into_iter()
            .map(|text| format!("left out, because it is other work: {text}"))
            .collect(),
        sections: vec![Section::default().with(table.wide())],
        ..Document::default()
    }
}

fn words(agreement: Agreement) -> (&'static str, Tone) {
    match agreement {
        Agreement::Confirmed => ("confirmed", Tone::Less),
        Agreement::Contradicted => ("contradicted", Tone::More),
        Agreement::OnlyThen => ("no difference detected now", Tone::Same),
        Agreement::OnlyNow => ("no difference detected in the artifact", Tone::Same),
        Agreement::NoDifference => ("no difference detected in either", Tone::Same),
        Agreement::TooFew => (TOO_FEW, Tone::Dim),
        Agreement::Missing => ("missing", Tone::Dim),
    }
}
