//! Figures of experiments and names as text: quantities are written by `heaptoll-units`, and nothing unprintable gets
//! past this.

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use heaptoll_experiment::comparison::{Figure, Metric, ProgramTable};
use heaptoll_experiment::disturbance::Disturbed;
use heaptoll_experiment::experiment::Experiment;
use heaptoll_statistics::Interval;
pub use heaptoll_statistics::{NO_DIFFERENCE, NOT_DECIDED, TOO_FEW, claim, verdict};
pub use heaptoll_units::{
    NONE, and_list, count, mib_from_bytes, mib_from_kib, milliseconds, percent_off, plural, ratio,
    rounded_percent, seconds, significant,
};

/// A ratio and its interval, `0.91 (0.88–0.94)`. Ends that would round onto each other, or a claimed end that would
/// round to 1, get a third decimal, so that the text never contradicts the claim.
pub fn interval(value: &Interval) -> String {
    let Interval { ratio: middle, low, high, .. } = *value;
    if !(middle.is_finite() && low.is_finite() && high.is_finite()) {
        return NONE.to_owned();
    }
    let hides = |end: f64| ratio(end) == "1.00" && end != 1.0;
    let needs_more = ratio(low) == ratio(high) && low != high || value.differs && (hides(low) || hides(high));
    if needs_more && high < 9.995 {
        return format!("{middle:.3} ({low:.3}–{high:.3})");
    }
    format!("{} ({}–{})", ratio(middle), ratio(low), ratio(high))
}

/// A certain difference: `35 % less memory (33 % to 37 %)`.
pub fn changed(interval: &Interval, noun: &str) -> String {
    let (near, far, direction) = match interval.ratio < 1.0 {
        true => (interval.high, interval.low, "less"),
        false => (interval.low, interval.high, "more"),
    };
    let [middle, near, far] = [interval.ratio, near, far].map(percent_off);
    format!("{middle} {direction} {noun} ({near} to {far})")
}

/// The smallest difference that each of these ratios could show, towards 1 so that it contradicts no claim, as a ratio
/// below 1: the nearest to 1 and the furthest, with the names of their rows.
pub fn detectable<'a>(ratios: impl Iterator<Item = (&'a str, Interval)>) -> Option<[(&'a str, f64); 2]> {
    let judged = ratios.filter(|(_, ratio)| ratio.has_enough_pairs());
    let least = |Interval { ratio, low, high, .. }| if ratio < 1.0 { ratio / high } else { low / ratio };
    let mut found: Vec<(&str, f64)> = judged.map(|(name, ratio)| (name, least(ratio))).collect();
    found.sort_by(|a, b| b.1.total_cmp(&a.1));
    Some([*found.first()?, *found.last()?])
}

/// `2.1 % (snmalloc) to 36 % (tithe)`, or `about 2.1 %` where all are alike.
pub fn detectable_in_words([least, most]: [(&str, f64); 2]) -> String {
    let [low, high] = [least, most].map(|(_, ratio)| percent_off(ratio));
    if low == high { format!("about {low}") } else { format!("{low} ({}) to {high} ({})", least.0, most.0) }
}

/// What heaptoll itself adds to an invocation: `0.63 ms and 212 KiB`. Both are differences of two measurements; one that
/// is not above zero is less than they can show.
pub fn own_cost(seconds: f64, kib: i64) -> String {
    let time =
        if seconds > 0.0 { format!("{} ms", milliseconds(seconds)) } else { "no measurable time".into() };
    let memory = if kib > 0 { format!("{kib} KiB") } else { "no measurable memory".into() };
    format!("{time} and {memory}")
}

/// What else the machine did while a table was measured, and how much of it is too much.
pub fn disturbed(found: &Disturbed) -> String {
    let mean = &found.mean;
    let held = mean.throttled.filter(|&share| share > 0.0);
    let held =
        held.map_or(String::new(), |share| format!(", throttled by cpu.max {}", rounded_percent(share)));
    let judged = match (found.loaded, found.blocks) {
        (0, _) => "quiet".to_owned(),
        (loaded, blocks) if loaded == blocks => "all repetitions affected".to_owned(),
        (loaded, blocks) => {
            format!("{} of {} affected", count(loaded.into()), plural(blocks as usize, "repetition"))
        }
    };
    format!(
        "Machine load during the runs: other work {} of the processors, steal {}, interrupts {}{held}: {judged}",
        rounded_percent(mean.other_work),
        rounded_percent(mean.steal),
        rounded_percent(mean.interrupts)
    )
}

/// How often runs lost their processor, over the stacks of a table.
pub fn switches(table: &ProgramTable) -> Option<String> {
    let all = || table.rows.iter().filter_map(|row| row.involuntary_switches_per_cpu_s);
    let (least, most) = (all().reduce(f64::min)?, all().reduce(f64::max)?);
    Some(match (count(least), count(most)) {
        (least, most) if least == most => format!("Involuntary context switches: {least} a CPU second"),
        (least, most) => format!("Involuntary context switches: {least} to {most} a CPU second, by stack"),
    })
}

/// A median in the unit its metric is shown in (seconds, MiB or a count), without the unit.
pub fn median(metric: Metric, figure: &Figure) -> String {
    in_unit(metric, figure.median)
}

/// A value of this metric in the unit it is shown in.
pub fn in_unit(metric: Metric, value: f64) -> String {
    match metric {
        Metric::Cpu | Metric::Wall => seconds(value),
        Metric::PeakRss => mib_from_kib(value),
        Metric::Instructions => count(value),
    }
}

/// A time of day in UTC, `2026-11-21 09:06 UTC`.
pub fn date(unix_s: f64) -> String {
    // The end of the year 9999: RFC 3339 ends there.
    const LAST: f64 = 253_402_300_799.0;
    if !(0.0..=LAST).contains(&unix_s) {
        return NONE.to_owned();
    }
    let when = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(unix_s as u64)).to_string();
    format!("{} {} UTC", &when[..10], &when[11..16])
}

/// One line of text that a terminal or a page may show: control characters and those that reorder text are written
/// as escapes, so that a program's name or its standard error cannot move the cursor or hide a word.
pub fn printable(text: &str) -> String {
    escape(text, |_| false)
}

/// Like [`printable`], with line ends and tabs kept.
pub fn printable_lines(text: &str) -> String {
    escape(text, |c| c == '\n' || c == '\t')
}

fn escape(text: &str, keep: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let reorders =
            matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        // Some browsers and terminals take these two for line ends.
        let breaks = matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}');
        if (c.is_control() || reorders || breaks) && !keep(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// A command line that a shell reads back as the same arguments.
pub fn shell_command(arguments: &[impl AsRef<str>]) -> String {
    // A NUL cannot be in an argument that was ever run; shown, not failed on.
    let clean: Vec<String> = arguments.iter().map(|word| word.as_ref().replace('\0', "\u{fffd}")).collect();
    clean.iter().map(|argument| shell_word(argument)).collect::<Vec<_>>().join(" ")
}

/// One argument as a shell takes it. What a terminal or a page would show as an escape is one to the shell, too.
fn shell_word(argument: &str) -> String {
    if printable(argument) == *argument {
        return shlex::try_quote(argument).map_or_else(|_| argument.to_owned(), Into::into);
    }
    let mut word = String::from("$'");
    for c in argument.chars() {
        match c {
            '\\' | '\'' => word.extend(['\\', c]),
            c if printable(c.encode_utf8(&mut [0; 4])).len() == c.len_utf8() => word.push(c),
            c => c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| word.push_str(&format!("\\x{byte:02x}"))),
        }
    }
    word + "'"
}

/// A path as a shell takes it.
pub fn shell_path(path: &Path) -> String {
    shell_command(&[path.display().to_string()])
}

/// A sentence on each program that has no table because it was refused under the baseline already.
pub fn left_out(experiment: &Experiment) -> Vec<String> {
    let kept = |name: &String| experiment.programs.iter().any(|program| program.name == *name);
    let refused = experiment.refused.iter().filter(|(program, ..)| !kept(program));
    refused
        .map(|(program, stack, reason)| format!("{program} is left out, refused under {stack}: {reason}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use heaptoll_experiment::disturbance::Disturbance;

    use super::*;

    fn around(ratio: f64, low: f64, high: f64) -> Interval {
        Interval { ratio, low, high, differs: !(low <= 1.0 && 1.0 <= high), pairs: 15 }
    }

    #[test]
    fn a_shell_reads_a_command_back_as_it_was() {
        let command = ["printf", "%s|", "a b", "it's", "\u{1b}[31m", "\n\\x41'", "é\u{202e}", "", "$'x'"]
            .map(str::to_owned);
        let line = shell_command(&command);
        assert_eq!(printable(&line), line, "a page shows it as it is");
        let output = std::process::Command::new("bash").args(["-c", &line]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), command[2..].join("|") + "|");
    }

    #[test]
    fn an_own_cost_below_what_can_be_measured_is_no_negative_number() {
        assert_eq!(own_cost(0.00063, 212), "0.63 ms and 212 KiB");
        assert_eq!(own_cost(0.00063, -88), "0.63 ms and no measurable memory");
        assert_eq!(own_cost(-0.0001, 0), "no measurable time and no measurable memory");
    }

    #[test]
    fn an_interval_never_contradicts_its_claim() {
        assert_eq!(interval(&around(0.91, 0.884, 0.9449)), "0.91 (0.88–0.94)");
        assert_eq!(interval(&around(0.993, 0.988, 0.998)), "0.993 (0.988–0.998)");
        assert_eq!(interval(&around(1.0, 0.998, 1.003)), "1.000 (0.998–1.003)");
        assert_eq!(interval(&around(1.01, 0.97, 1.05)), "1.01 (0.97–1.05)");
        assert_eq!(interval(&around(12.345, 11.0, 14.04)), "12.3 (11.0–14.0)");
        assert_eq!(interval(&around(f64::NAN, 0.9, 1.0)), NONE);
    }

    #[test]
    fn disturbance_is_judged_in_words() {
        let mean =
            Disturbance { steal: 0.003, interrupts: 0.001, other_work: 0.45, ..Disturbance::default() };
        let text = |loaded, throttled| {
            disturbed(&Disturbed { mean: Disturbance { throttled, ..mean }, blocks: 10, loaded })
        };
        let start =
            "Machine load during the runs: other work 45 % of the processors, steal 0.3 %, interrupts 0.1 %";
        assert_eq!(text(0, None), format!("{start}: quiet"));
        assert_eq!(text(7, Some(0.0)), format!("{start}: 7 of 10 repetitions affected"));
        assert_eq!(
            text(10, Some(0.12)),
            format!("{start}, throttled by cpu.max 12 %: all repetitions affected")
        );
    }

    #[test]
    fn nothing_unprintable_gets_through() {
        assert_eq!(printable("a\x1b[2J\u{202e}b\n"), "a\\u{1b}[2J\\u{202e}b\\n");
        assert_eq!(printable_lines("one\n\ttwo\0"), "one\n\ttwo\\u{0}");
        assert_eq!(printable("Größe 大 \u{fffd}"), "Größe 大 \u{fffd}");
    }

    #[test]
    fn a_command_survives_the_shell() {
        let arguments: Vec<String> =
            ["heaptoll", "run", "--", "sh", "-c", "echo '<b>' \"$HOME\""].map(str::to_owned).into();
        let text = shell_command(&arguments);
        assert_eq!(shlex::split(&text), Some(arguments));
        assert_eq!(shell_command(&["a\0b c".to_owned()]), "'a\u{fffd}b c'");
        assert_eq!(shell_path(Path::new("/kept/my runs/a.db")), "'/kept/my runs/a.db'");
    }

    #[test]
    fn dates_are_utc() {
        assert_eq!(date(1_795_251_983.7), "2026-11-21 09:06 UTC");
        assert_eq!(date(f64::MAX), NONE);
        assert_eq!(date(-1.0), NONE);
        assert_eq!(date(f64::NAN), NONE);
    }
}
