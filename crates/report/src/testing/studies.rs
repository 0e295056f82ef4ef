//! A made-up page of repeated papers of realistic size: claims with their comparisons, tables and figures as wide as they
//! come, and names that a page must escape. Nothing in it was measured.

use super::noise::Noise;
use super::shape::{HOSTILE, PROGRAMS};
use crate::document::{
    Axis, Cell, Chart, Column, Document, Effect, Form, Intervals, Item, Link, Part, Ratio, Region, Section,
    Series, Share, Table, Tone,
};

const MANAGERS: [&str; 11] = [
    "cartesian",
    "kingsley",
    "bw16",
    "haertel",
    "knuth",
    "glibc",
    "tithe-collect",
    "mimalloc3",
    "bdw-nofree",
    "bw26",
    "tithe",
];
const PAPERS: [&str; 4] = ["zorn1992", "detlefs1994", "boehm-myths", "sareen2022"];
const CLAIM: &str =
    "A conservative collector costs a fifth of the CPU time that the best explicit manager needs";
/// Answers to claims, their colours, and how many comparisons decide them.
const ANSWERS: [(&str, Tone, usize); 5] = [
    ("holds", Tone::Less, 1),
    ("fails", Tone::More, 12),
    ("not decided", Tone::Same, 6),
    ("not measured", Tone::Same, 0),
    ("holds", Tone::Less, 60),
];

/// The page.
pub fn studies() -> Document {
    let mut noise = Noise(7);
    let share = |(name, tone, count): &(&str, Tone, usize)| Share {
        name: (*name).into(),
        count: *count,
        tone: *tone,
    };
    let verdicts = Section::new("What holds today")
        .state("A claim holds when the whole interval lies in its region.")
        .with_all([Item::Tally(ANSWERS[..3].iter().map(share).collect())])
        .with_all(PAPERS.map(|paper| Item::Table(verdicts(paper, &mut noise))));
    let sections = PAPERS.map(|paper| {
        let claims = ANSWERS.into_iter().enumerate().map(|(at, answer)| claim(paper, at, answer, &mut noise));
        let mut items: Vec<Item> = claims.collect();
        items.extend([wide(paper, &mut noise), bars(&mut noise), lines(&mut noise)]);
        Section::new(paper).state(HOSTILE).with_all(items)
    });
    Document {
        title: "What papers on memory management found, measured again".into(),
        subtitle: "2026-11-22 04:10 UTC · Made-up processor, 2 cores · heaptoll 0.1.0".into(),
        warnings: vec!["1 of 4 steps was cut: the machine was busy.".into()],
        sections: [verdicts].into_iter().chain(sections).collect(),
        facts: vec![("machine".into(), "two cores".into()), (HOSTILE.into(), HOSTILE.into())],
        command: "heaptoll lab study all --budget 30m --html study.html".into(),
        ..Document::default()
    }
}

/// A paper's claims, with what decided them.
fn verdicts(paper: &str, noise: &mut Noise) -> Table {
    let link = |at: usize, text: &str| vec![Link { id: format!("{paper}-claim{at}"), text: text.into() }];
    Table::of(ANSWERS.into_iter().enumerate())
        .text("Today", |(_, (answer, tone, _))| Cell::text(*answer).toned(*tone))
        .text("The claim", |(at, _)| Cell {
            range: format!("§5.{at}"),
            links: link(*at, ""),
            ..Cell::text(CLAIM)
        })
        .text("What decided", |(at, (.., count))| Cell {
            intervals: (*count > 0).then(|| intervals(*count, noise)),
            links: link(*at, "Table 3"),
            ..Cell::text("geometric mean 1.04 (0.89–1.19)")
        })
        .parts("")
}

fn intervals(count: usize, noise: &mut Noise) -> Intervals {
    let effects = (0..count).map(|at| {
        let value: f64 = 1.3 * (1.0 + 0.2 * noise.normal());
        let ends = (value * 0.9, value * 1.1);
        let (over, program) = (MANAGERS[at % MANAGERS.len()], PROGRAMS[at % PROGRAMS.len()].0);
        Effect {
            words: format!("bw16 over {over} on {program}"),
            text: format!("{value:.2}"),
            range: format!("({:.2}–{:.2})", ends.0, ends.1),
            basis: "10 pairs".into(),
            value,
            ends: Some(ends),
        }
    });
    Intervals { region: Region { above: Some(1.0), ..Region::default() }, effects: effects.collect() }
}

fn claim(paper: &str, at: usize, (answer, _, count): (&str, Tone, usize), noise: &mut Noise) -> Item {
    let Intervals { region, effects } = intervals(count, noise);
    let value = |effect: &Effect| {
        let drawn = Intervals { region, effects: vec![effect.clone()] };
        Cell { range: effect.range.clone(), intervals: Some(drawn), ..Cell::text(&effect.text) }
    };
    let table = Table::of(effects)
        .text("Comparison", |effect| effect.words.clone())
        .figure("Effect", value)
        .text("Over", |effect| effect.basis.clone())
        .parts("");
    Item::Part(Part {
        id: format!("{paper}-claim{at}"),
        title: format!("{answer}: {CLAIM} {HOSTILE}"),
        items: vec![Item::Table(Table { one_scale: true, ..table })],
        see: vec![Link { id: format!("{paper}-table3"), text: "Table 3: CPU seconds".into() }],
        folded: true,
        ..Part::default()
    })
}

/// Every program under every manager, with the published value, ours, and its ratio to a baseline.
fn wide(paper: &str, noise: &mut Noise) -> Item {
    let mut cell = |(program, _, cpu, _): &(&str, &str, f64, f64), at: usize| {
        let ratio: f64 = 1.0 + 0.2 * noise.normal();
        let tone = if ratio > 1.1 { Tone::More } else { Tone::Same };
        let range = format!("({:.2}–{:.2})", ratio - 0.1, ratio + 0.1);
        let published = if at < 5 { format!("{:.1}", 10.0 * cpu) } else { String::new() };
        match (*program, at) {
            ("gawk", 4) => Cell { missing: "it crashed: signal 11".into(), published, ..Cell::default() },
            _ => Cell {
                published,
                ratio: Some(Ratio { text: format!("{ratio:.2}"), range, tone }),
                ..Cell::text(format!("{:.3}", cpu / 9.0))
            },
        }
    };
    let table = Table::of(PROGRAMS.iter().take(10).copied())
        .text("Program", |(program, ..)| *program)
        .each(0..MANAGERS.len(), |at| Column::figures(MANAGERS[*at]), |row, at| cell(row, *at))
        .note("Programs have the same names, in today's versions.")
        .parts("cartesian");
    let command =
        "heaptoll run cfrac espresso gawk -m cartesian,kingsley,bw16 -r 10 --size quick --json out.json";
    let repeat = Part {
        title: "Repeat it".into(),
        items: vec![Item::Commands(vec![command.into()])],
        folded: true,
        ..Part::default()
    };
    Item::Part(Part {
        id: format!("{paper}-table3"),
        title: "Table 3: CPU seconds".into(),
        text: vec!["Seconds of user and system time, less what a program takes to start.".into()],
        items: vec![Item::Table(table), Item::Part(repeat)],
        ..Part::default()
    })
}

fn bars(noise: &mut Noise) -> Item {
    let names: Vec<String> = PROGRAMS.iter().take(8).map(|(name, ..)| (*name).to_owned()).collect();
    let series = MANAGERS.iter().enumerate().map(|(at, name)| {
        let value = |place: usize| (place as f64, 1.0 + 0.15 * noise.normal().abs() + 0.02 * at as f64);
        let points: Vec<(f64, f64)> = (0..names.len()).map(value).collect();
        Series {
            name: (*name).to_owned(),
            band: points.iter().map(|(_, value)| (value - 0.06, value + 0.08)).collect(),
            published: points.iter().filter(|_| at < 5).map(|(place, value)| (*place, value * 1.1)).collect(),
            points,
            ..Series::default()
        }
    });
    let series = series.collect();
    Item::Chart(Chart {
        title: "Figure 1".into(),
        caption: "Whiskers: intervals.".into(),
        form: Form::Bars,
        x: Axis { names, ..Axis::default() },
        y: Axis { title: "CPU time, ratio to cartesian".into(), ..Axis::default() },
        series,
    })
}

fn lines(noise: &mut Noise) -> Item {
    let series = MANAGERS.iter().take(5).enumerate().map(|(at, name)| {
        let faults = |size: f64, noise: &mut Noise| {
            (1.0 + at as f64) * 4e6 / size.powf(1.3) * (1.0 + 0.05 * noise.normal())
        };
        let sizes = (7..14).map(|power| f64::from(1 << power));
        let points: Vec<(f64, f64)> = sizes.map(|size| (size, faults(size, noise))).collect();
        Series {
            name: (*name).to_owned(),
            band: points.iter().map(|(_, y)| (0.8 * y, 1.2 * y)).collect(),
            published: points.iter().filter(|_| at == 0).map(|(x, y)| (*x, 1.5 * y)).collect(),
            points,
            ..Series::default()
        }
    });
    let axis = |title: &str| Axis { title: title.into(), log: true, names: vec![] };
    Item::Chart(Chart {
        title: "Figure 4".into(),
        caption: "Simulated with LRU.".into(),
        form: Form::Lines,
        x: axis("memory, KiB"),
        y: axis("page faults"),
        series: series.collect(),
    })
}
