//! The document of `heaptoll trace stat`.

use std::path::Path;

use heaptoll_profiles::{Measure, Profile};
use heaptoll_report::document::{Columns, Document, Section, Table};
use heaptoll_report::format::{NONE, shell_command};
use heaptoll_trace_analysis::stat::StatFigures;
use heaptoll_units::{bytes, number, objects, part, percent, rate, time_ns, whole_bytes};

use super::sections;
use heaptoll_command::call_stacks::flame;
use heaptoll_command::subject;

/// The whole document; with a profile, its flame graph is on the page.
pub fn document(figures: &StatFigures, profile: Option<Profile>, trace: &Path) -> Document {
    let mut all = vec![overview(figures)];
    all.extend(sections::calls(figures));
    all.extend(sections::sizes(figures));
    all.extend(sections::reallocs(figures));
    all.extend(sections::threads(figures));
    all.extend(sections::latencies(figures));
    let flame = profile.map(|profile| flame(profile, Measure::AllocatedBytes));
    all.extend(sections::sites(figures, flame));
    all.extend(sections::over_the_run(figures));
    let mut warnings = subject::warnings(&figures.subject, figures.misfits);
    let lost = figures.kinds.iter().find(|kind| kind.kind == heaptoll_trace::EventKind::Lost);
    if let Some(lost) = lost {
        warnings.push(format!(
            "the recorder missed the frees of {}, so live bytes are too high until their addresses are used again",
            objects(lost.calls)
        ));
    }
    Document {
        title: format!("What {} allocates", figures.subject.program()),
        subtitle: subject::subtitle(&figures.subject),
        warnings,
        sections: all,
        facts: subject::facts(&figures.subject, trace, figures.events),
        command: shell_command(&["heaptoll", "trace", "stat", &trace.display().to_string()]),
        ..Document::default()
    }
}

/// Table II of Detlefs, Dosser & Zorn 1994, and a few lines more.
fn overview(figures: &StatFigures) -> Section {
    let all =
        [objects_and_bytes(figures), kept_and_temporary(figures), rates(figures), cross_thread(figures)];
    let unknown = (figures.internal.unknown > 0).then(|| {
        format!(
            "The usable size of {} blocks is unknown: it is assumed equal to the requested size.",
            number(figures.internal.unknown)
        )
    });
    let times = figures.rates.objects_per_cpu_s;
    let times = times.map(|_| "CPU and wall time belong to the recorded run, with the recorder.".to_owned());
    let overview = lines(all.into_iter().flatten());
    Section::default().with(overview.notes(unknown).notes(times))
}

/// A line of the overview: what, its figure, and more about it.
pub(super) type Line = (&'static str, String, String);

/// The table of such lines.
pub(super) fn lines(all: impl IntoIterator<Item = Line>) -> Columns<Line> {
    Table::of(all).text("", |line| line.0).figure("", |line| line.1.clone()).text("", |line| line.2.clone())
}

fn objects_and_bytes(figures: &StatFigures) -> Vec<Line> {
    let peak = &figures.peak;
    vec![
        ("objects allocated", number(figures.objects), String::new()),
        (
            "bytes allocated",
            whole_bytes(figures.bytes),
            match figures.reallocs.grown_bytes {
                0 => String::new(),
                grown => format!("{} of it growth by realloc", whole_bytes(grown)),
            },
        ),
        ("average size", figures.average_size_bytes.map_or_else(|| NONE.to_owned(), bytes), String::new()),
        ("most objects alive", number(figures.max_live_objects), String::new()),
        (
            "most bytes alive",
            whole_bytes(peak.live_bytes),
            format!(
                "{} bytes in {}, after {} of the allocated bytes, {}",
                number(peak.live_bytes),
                objects(peak.live_objects),
                part(peak.clock_bytes, figures.bytes),
                time_ns(peak.time_ns as f64)
            ),
        ),
    ]
}

/// What is never freed, what blocks have to spare, and what is freed at once.
fn kept_and_temporary(figures: &StatFigures) -> Vec<Line> {
    let (internal, temporary) = (&figures.internal, &figures.temporary);
    let share = |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), percent);
    let of_all = |count| part(count, figures.objects);
    let kept = match figures.kept_by_library().objects {
        0 => String::new(),
        kept => format!(", {} of them kept by the C library for itself", number(kept)),
    };
    vec![
        (
            "never freed",
            whole_bytes(figures.at_exit.bytes),
            format!("{}, {} of all{kept}", objects(figures.at_exit.objects), of_all(figures.at_exit.objects)),
        ),
        (
            "internal fragmentation",
            share(internal.at_peak_share),
            format!(
                "{} of {} usable at the peak; over all blocks {}",
                whole_bytes(internal.at_peak_bytes),
                whole_bytes(figures.peak.usable_bytes),
                share(internal.overall_share)
            ),
        ),
        (
            "freed before the next object",
            of_all(temporary.before_next_1),
            "of the thread that made it".to_owned(),
        ),
        (
            "freed before the tenth next",
            of_all(temporary.before_next_10),
            format!("before the hundredth next {}", of_all(temporary.before_next_100)),
        ),
        ("freed within 4 KiB of allocation", of_all(temporary.within_4_kib), String::new()),
    ]
}

/// How fast the program allocates, by the wall's clock and by its CPU time, where these are known.
fn rates(figures: &StatFigures) -> Vec<Line> {
    let rates = &figures.rates;
    let line = |name, objects: Option<f64>, bytes_per_s: Option<f64>, time: &str| {
        Some((name, rate(objects?), format!("{}/s of {time} time", bytes(bytes_per_s?))))
    };
    [
        line("allocation rate", rates.objects_per_s, rates.bytes_per_s, "wall"),
        line("allocation rate by CPU", rates.objects_per_cpu_s, rates.bytes_per_cpu_s, "CPU"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn cross_thread(figures: &StatFigures) -> Vec<Line> {
    if figures.threads.len() <= 1 {
        return Vec::new();
    }
    let crossed = format!("{} of {} frees", number(figures.cross_thread_frees), number(figures.frees));
    vec![("freed by another thread", part(figures.cross_thread_frees, figures.frees), crossed)]
}
