//! A made-up book of realistic size: four papers, claims of every answer, tables and figures as wide as they come, and
//! names that a page must escape.

use super::noise::Noise;
use super::shape::{HOSTILE, PROGRAMS};
use crate::book::{Answer, Book, Claim, Exhibit, Pair, Pairs, PaperSection, Step, Test};
use crate::document::{Axis, Chart, Effect, Form, Ratio, Region, Series, Tone};

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

/// Titles of papers with one claim of each.
const PAPERS: [(&str, &str, &str); 4] = [
    (
        "zorn1992",
        "Zorn 1992: what conservative collection costs",
        "A conservative collector costs a fifth of the CPU time that the best explicit manager needs",
    ),
    (
        "detlefs1994",
        "Detlefs, Dosser and Zorn 1994: costs of large programs",
        "No manager is the best on every program, in time or in memory",
    ),
    (
        "boehm-myths",
        "Boehm: myths about allocation and collection",
        "Long-running programs fragment memory without bound",
    ),
    (
        "sareen2022",
        "Sareen and Blackburn 2022: what delaying reclamation does",
        "A quarantine of 64 KiB costs mimalloc no time that can be measured",
    ),
];

/// A book; nothing in it was measured.
pub fn book() -> Book {
    let mut noise = Noise(7);
    let papers = PAPERS.map(|(id, title, words)| paper(id, title, words, &mut noise));
    let text = |text: &str| text.to_owned();
    let steps = PAPERS.iter().map(|(id, ..)| Step {
        name: format!("{id}-time"),
        extent: "6 of 10 programs, 6 of 10 repetitions, inputs quick".into(),
        took: "1 min 42 s".into(),
        ending: if *id == "sareen2022" { text("cut at its deadline; its partial figures are in") } else { String::new() },
        precision: "6 of 10 repetitions: intervals 1.6 times as wide".into(),
        warnings: vec![format!("{HOSTILE} was refused under knuth: statically linked")],
        command: format!("heaptoll run cfrac espresso gawk perl {HOSTILE} -m cartesian,kingsley,bw16,haertel,knuth,glibc -r 6 --size quick"),
    });
    Book {
        title: "What papers on memory management found, measured again".into(),
        lead: vec![text(
            "Every experiment of 4 papers was run again, with the allocators and collectors of its time and of today, on programs of today. Each claim holds, fails or is not decided. The sections have the figures, next to those that were published.",
        )],
        dateline: [
            "2026-11-22 04:10 UTC",
            "Made-up processor, 2 cores",
            "took 28 min of 30 min given",
            "heaptoll 0.1.0",
        ]
        .map(text)
        .into(),
        warnings: vec![text("1 of 4 steps was cut: the machine was busy.")],
        how: vec![
            text("A claim holds when the whole interval lies in its region."),
            text("Hollow dots do not decide."),
        ],
        papers: papers.into(),
        steps: steps.collect(),
        facts: vec![("machine".into(), "two cores".into()), (HOSTILE.into(), HOSTILE.into())],
        command: "heaptoll lab study all --budget 30m --html study.html".into(),
    }
}

fn paper(id: &str, title: &str, words: &str, noise: &mut Noise) -> PaperSection {
    let answers = [Answer::Holds, Answer::Fails, Answer::Undecided, Answer::NotMeasured, Answer::Holds];
    let claims = answers.into_iter().enumerate().map(|(at, answer)| {
        let counts = [1, 12, 6, 0, 60];
        let tests =
            if answer == Answer::NotMeasured { vec![] } else { vec![test(words, answer, counts[at], noise)] };
        let reason = tests.first().map_or_else(
            || "Not measured: copying collectors are not built".to_owned(),
            |test| test.reason.clone(),
        );
        let myth = id == "boehm-myths" && at < 3;
        Claim {
            id: format!("claim{at}"),
            place: if myth { format!("Allocation myth {}", at + 1) } else { format!("§5.{at}") },
            words: if at == 4 { format!("{words} {HOSTILE}") } else { words.to_owned() },
            myth,
            ours: false,
            answer,
            reason,
            exhibits: vec!["table3".into(), "figure1".into()],
            tests,
        }
    });
    PaperSection {
        id: id.into(),
        title: title.into(),
        source: "An author, A title that is as long as titles of technical reports are, technical report 573, a university, 1992".into(),
        about: vec!["The paper ran six C programs with four explicit managers and a collector whose free does nothing. It compared CPU time, memory and locality.".into()],
        summary: vec![],
        names: vec![("manager".into(), "sunos".into(), "cartesian".into()), ("program".into(), "yacr".into(), HOSTILE.into())],
        claims: claims.collect(),
        exhibits: vec![
            wide(noise),
            list(),
            bars(noise),
            lines(noise),
        ],
    }
}

fn test(words: &str, answer: Answer, count: usize, noise: &mut Noise) -> Test {
    let (middle, half) = match answer {
        Answer::Holds => (1.6, 0.12),
        Answer::Fails => (0.8, 0.1),
        _ => (1.04, 0.15),
    };
    let effects = (0..count).map(|at| {
        let value: f64 = middle * (1.0 + 0.04 * noise.normal());
        let ends = (value * (1.0 - half), value * (1.0 + half));
        Effect {
            words: format!(
                "bw16 over {} on {}",
                MANAGERS[at % MANAGERS.len()],
                PROGRAMS[at % PROGRAMS.len()].0
            ),
            text: format!("{value:.2}"),
            range: format!("({:.2}–{:.2})", ends.0, ends.1),
            basis: "10 pairs".into(),
            value,
            ends: Some(ends),
        }
    });
    Test {
        words: format!("{words}: ratio above 1"),
        answer,
        reason: format!(
            "geometric mean {middle} ({:.2}–{:.2}) over {count} comparisons",
            middle - half,
            middle + half
        ),
        detectable: "The smallest difference that these data could have shown: 9 %.".into(),
        region: Region { above: Some(1.0), ..Region::default() },
        effects: effects.collect(),
        others: vec![],
    }
}

fn pair(value: f64, noise: &mut Noise) -> Pair {
    let ratio: f64 = 1.0 + 0.2 * noise.normal();
    let tone = if ratio > 1.1 {
        Tone::More
    } else if ratio < 0.9 {
        Tone::Less
    } else {
        Tone::Same
    };
    Pair {
        ours: format!("{value:.3}"),
        range: String::new(),
        ratio: Some(Ratio {
            text: format!("{ratio:.2}"),
            range: format!("({:.2}–{:.2})", ratio - 0.1, ratio + 0.1),
            tone,
        }),
        paper: format!("{:.1}", 90.0 * value),
        missing: String::new(),
    }
}

fn wide(noise: &mut Noise) -> Exhibit {
    let rows = PROGRAMS.iter().take(10).map(|(program, _, cpu, _)| {
        let cells = MANAGERS.iter().enumerate().map(|(at, _)| match at {
            4 if *program == "gawk" => {
                Pair { missing: "it crashed: signal 11".into(), paper: "88.1".into(), ..Pair::default() }
            }
            5.. => Pair { paper: String::new(), ..pair(cpu / 9.0, noise) },
            _ => pair(cpu / 9.0, noise),
        });
        ((*program).to_owned(), cells.collect())
    });
    Exhibit {
        id: "table3".into(),
        title: "Table 3: CPU seconds".into(),
        text: vec!["Seconds of user and system time, less what a program takes to start.".into()],
        table: Pairs {
            columns: std::iter::once("Program").chain(MANAGERS).map(String::from).collect(),
            rows: rows.collect(),
            baseline: "cartesian".into(),
        },
        notes: vec!["Programs have the same names, in today's versions.".into()],
        commands: vec![
            "heaptoll run cfrac espresso gawk -m cartesian,kingsley,bw16 -r 10 --size quick --json out.json"
                .into(),
        ],
        ..Exhibit::default()
    }
}

fn list() -> Exhibit {
    let row = |words: &str, paper: &str, ours: &str, range: &str, missing: &str| {
        let pair = Pair {
            paper: paper.into(),
            ours: ours.into(),
            range: range.into(),
            missing: missing.into(),
            ratio: None,
        };
        (words.to_owned(), vec![pair])
    };
    Exhibit {
        id: "list".into(),
        title: "What the text states".into(),
        table: Pairs {
            columns: vec!["Quantity".into(), String::new()],
            rows: vec![
                row(
                    "time of a quarantine of 64 KiB over one byte, mimalloc, geometric mean of the suite",
                    "0.3 %",
                    "0.8 %",
                    "(−1.1 to 2.7)",
                    "",
                ),
                row("requests just after a collection, longer by", "10 %–18 %", "12 %", "(9–15)", ""),
                row(HOSTILE, "66 %", "", "", "copying collectors are not built"),
                row("heap of a copying collector", "34 %", "", "", "copying collectors are not built"),
            ],
            baseline: String::new(),
        },
        ..Exhibit::default()
    }
}

fn bars(noise: &mut Noise) -> Exhibit {
    let places: Vec<String> = PROGRAMS.iter().take(8).map(|(name, ..)| (*name).to_owned()).collect();
    let series = MANAGERS.iter().enumerate().map(|(at, name)| {
        let values: Vec<f64> =
            places.iter().map(|_| 1.0 + 0.15 * noise.normal().abs() + 0.02 * at as f64).collect();
        Series {
            name: (*name).to_owned(),
            points: values.iter().enumerate().map(|(place, value)| (place as f64, *value)).collect(),
            band: values.iter().map(|value| (value - 0.06, value + 0.08)).collect(),
            published: if at < 5 {
                values.iter().enumerate().map(|(place, value)| (place as f64, value * 1.1)).collect()
            } else {
                vec![]
            },
            ..Series::default()
        }
    });
    let series: Vec<Series> = series.collect();
    let cell = |series: &Series, at: usize| Pair {
        ours: format!("{:.2}", series.points[at].1),
        range: format!("({:.2}–{:.2})", series.band[at].0, series.band[at].1),
        paper: series.published.get(at).map_or_else(String::new, |(_, value)| format!("{value:.2}")),
        ..Pair::default()
    };
    let rows = places
        .iter()
        .enumerate()
        .map(|(at, place)| (place.clone(), series.iter().map(|one| cell(one, at)).collect()));
    Exhibit {
        id: "figure1".into(),
        title: "Figure 1: CPU time of explicit and automatic management".into(),
        text: vec!["Each program under each manager, over that under cartesian.".into()],
        table: Pairs {
            columns: std::iter::once("").chain(MANAGERS).map(String::from).collect(),
            rows: rows.collect(),
            baseline: String::new(),
        },
        chart: Some(Chart {
            title: "Figure 1".into(),
            caption: "Whiskers: intervals.".into(),
            form: Form::Bars,
            x: Axis { names: places, ..Axis::default() },
            y: Axis { title: "CPU time, ratio to cartesian".into(), ..Axis::default() },
            series,
        }),
        ..Exhibit::default()
    }
}

fn lines(noise: &mut Noise) -> Exhibit {
    let sizes: Vec<f64> = (7..14).map(|power| f64::from(1 << power)).collect();
    let series = MANAGERS.iter().take(5).enumerate().map(|(at, name)| {
        let points: Vec<(f64, f64)> = sizes
            .iter()
            .map(|size| (*size, (1.0 + at as f64) * 4e6 / size.powf(1.3) * (1.0 + 0.05 * noise.normal())))
            .collect();
        Series {
            name: (*name).to_owned(),
            band: points.iter().map(|(_, y)| (0.8 * y, 1.2 * y)).collect(),
            published: if at == 0 { points.iter().map(|(x, y)| (*x, 1.5 * y)).collect() } else { vec![] },
            points,
            ..Series::default()
        }
    });
    let axis = |title: &str| Axis { title: title.into(), log: true, names: vec![] };
    Exhibit {
        id: "figure4".into(),
        title: "Figure 4: page faults over memory, gawk".into(),
        chart: Some(Chart {
            title: "Figure 4".into(),
            caption: "Simulated with LRU.".into(),
            form: Form::Lines,
            x: axis("memory, KiB"),
            y: axis("page faults"),
            series: series.collect(),
        }),
        ..Exhibit::default()
    }
}
