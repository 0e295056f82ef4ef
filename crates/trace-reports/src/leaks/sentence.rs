//! The sentence that an answer begins with: the worst call site, in words.

use heaptoll_callsites::Sum;
use heaptoll_report::format::printable;
use heaptoll_trace_analysis::leaks::{Growing, Kinds, LeakFigures, Rise, SHORTEST_NS, SiteLeaks, Slope};
use heaptoll_units::{bytes, number, objects, percent, time_ns, whole_bytes};

use super::sections::of_no_kind;

/// `365 objects` with their bytes: `22.0 MiB in 365 objects`.
fn amount(sum: Sum) -> String {
    format!("{} in {}", whole_bytes(sum.bytes), objects(sum.objects))
}

/// The innermost own frame of a row: `log_audit (audit.c:88)`.
fn place(name: &str) -> String {
    printable(name.split(" < ").next().unwrap_or(name))
}

/// The row with the most bytes of a kind.
fn most(figures: &LeakFigures, of: fn(&Kinds) -> Sum) -> Option<(&SiteLeaks, Sum)> {
    let rows = figures.rows.iter().map(|row| (row, of(&row.kinds))).filter(|(_, sum)| sum.objects > 0);
    // Of equal ones the first.
    rows.rev().max_by_key(|(_, sum)| sum.bytes)
}

/// How what is lost divides: `definitely 365, and 1 that only these held.`
fn definitely(own: Sum, led: Sum) -> String {
    match (own.objects, led.objects) {
        (0, _) | (_, 0) => "definitely.".to_owned(),
        (own, led) => format!("definitely {}, and {} that only these held.", number(own), number(led)),
    }
}

/// By how much something rises, with the interval.
fn steepness(rise: &Rise) -> String {
    let of = |slope: &Slope, unit: &str| {
        format!("by {} {unit} ({} to {})", bytes(slope.value), bytes(slope.low), bytes(slope.high))
    };
    match rise.per_s.as_ref().filter(|_| rise.in_time) {
        Some(per_s) => of(per_s, "a second"),
        None => of(&rise.per_mib, "for each MiB allocated"),
    }
}

fn grows(one: &Growing) -> String {
    format!("{} grows over the whole run: {}.", place(&one.name), steepness(&one.rise))
}

/// The worst that was found.
pub fn worst(figures: &LeakFigures) -> String {
    let lost = figures.kinds.definite.plus(figures.kinds.indirect);
    let of_all =
        format!("{} are lost: {}", amount(lost), definitely(figures.kinds.definite, figures.kinds.indirect));
    if let Some(row) = figures.rows.first().filter(|row| row.kinds.definite.objects > 0) {
        let how = definitely(row.kinds.definite, row.led);
        let of_row = format!("{} lost {}: {how}", place(&row.name), amount(row.lost()));
        return match lost.objects > row.lost().objects {
            true => format!("{of_row} In all, {of_all}"),
            false => of_row,
        };
    }
    if lost.objects > 0 {
        return of_all;
    }
    if let Some((row, possible)) = most(figures, |kinds| kinds.possible) {
        return format!("{} lost {}: possibly.", place(&row.name), amount(possible));
    }
    if figures.kinds.possible.objects > 0 {
        return format!("{} are lost: possibly.", amount(figures.kinds.possible));
    }
    if let Some(one) = figures.growing.first() {
        return grows(one);
    }
    if let Some((row, idle)) = most(figures, |kinds| kinds.idle) {
        return format!(
            "Nothing is lost; {} keeps {} that the program does not touch in the second half of the run.",
            place(&row.name),
            amount(idle)
        );
    }
    if let Some((row, left)) = most(figures, of_no_kind(figures)) {
        return format!("{} never freed {}.", place(&row.name), amount(left));
    }
    let (left, freed) = (figures.kinds.never_freed(), figures.kinds.freed_after_exit);
    match (left.objects, figures.judged_at_bytes) {
        (0, _) if figures.allocated.objects == 0 => "The trace has no objects.".to_owned(),
        (0, _) if !figures.kept.is_empty() => "Nothing is lost: only the C library kept objects.".to_owned(),
        (0, _) if figures.suppressed.stacks > 0 => {
            "All objects that were never freed are suppressed.".to_owned()
        }
        (0, _) if freed.objects > 0 => format!("Everything was freed: {} after exit began.", amount(freed)),
        (0, _) => "Everything was freed.".to_owned(),
        (_, Some(_)) => format!("Nothing is lost: {} are reachable at the end.", amount(left)),
        (_, None) => format!("{} were never freed.", amount(left)),
    }
}

/// What grows, where the first sentence is of another kind.
pub fn growth(figures: &LeakFigures) -> Option<String> {
    let worst = worst(figures);
    let one = figures.growing.first().map(grows).filter(|sentence| *sentence != worst);
    one.or_else(|| all_grow(figures))
        .or_else(|| fills(figures))
        .or_else(|| too_short(figures).map(|why| format!("Growth is not decided: {why}.")))
}

fn all_grow(figures: &LeakFigures) -> Option<String> {
    let rise = figures.rise_of_all.as_ref().filter(|_| figures.growing.is_empty())?;
    let most =
        figures.grown_most.iter().map(|one| format!("{} {}", place(&one.name), whole_bytes(one.bytes())));
    let most: Vec<String> = most.collect();
    let increase = match most.is_empty() {
        true => String::new(),
        false => format!(" From the first third to the last, most came from {}.", most.join("; ")),
    };
    Some(format!("No single call site grows, but all live bytes together do: {}.{increase}", steepness(rise)))
}

/// What rose at the start, where nothing grows.
fn fills(figures: &LeakFigures) -> Option<String> {
    let one = figures.filled.as_ref().filter(|_| figures.growing.is_empty())?;
    Some(format!(
        "Nothing grows: {} rose to {} until {} of the time, then stayed.",
        place(&one.name),
        whole_bytes(one.bytes),
        percent(one.until_share)
    ))
}

/// Why growth cannot show.
pub fn too_short(figures: &LeakFigures) -> Option<String> {
    let shortest = SHORTEST_NS as f64;
    let why = match figures.time_s.map(|time_s| time_s * 1e9) {
        Some(time) if time < shortest => {
            format!("it lasts {}, and the test needs {}", time_ns(time), time_ns(shortest))
        }
        _ => "it allocates almost nothing".to_owned(),
    };
    figures.is_short.then(|| format!("the run is too short ({why}); let the program run longer"))
}

#[cfg(test)]
mod tests {
    use heaptoll_trace_analysis::leaks::Filled;

    use super::*;

    fn figures(rows: Vec<SiteLeaks>) -> LeakFigures {
        let sum =
            |of: fn(&Kinds) -> Sum| rows.iter().map(|row| of(&row.kinds)).fold(Sum::default(), Sum::plus);
        let kinds = Kinds {
            definite: sum(|kinds| kinds.definite),
            possible: sum(|kinds| kinds.possible),
            reachable: sum(|kinds| kinds.reachable),
            idle: sum(|kinds| kinds.idle),
            unjudged: sum(|kinds| kinds.unjudged),
            ..Kinds::default()
        };
        LeakFigures { kinds, rows, judged_at_bytes: Some(1), ..LeakFigures::default() }
    }

    fn row(name: &str, kinds: Kinds) -> SiteLeaks {
        SiteLeaks { name: name.into(), kinds, ..SiteLeaks::default() }
    }

    const SOME: Sum = Sum { objects: 365, bytes: 22 << 20 };

    #[test]
    fn the_worst_site_is_named_with_what_it_lost() {
        let kinds = Kinds { definite: SOME, ..Kinds::default() };
        let mut lost = row("log_audit (audit.c:88) < main (m.c:2)", kinds);
        let found = figures(vec![lost.clone()]);
        assert_eq!(worst(&found), "log_audit (audit.c:88) lost 22.0 MiB in 365 objects: definitely.");
        lost.led = Sum { objects: 1, bytes: 10 };
        assert!(
            worst(&figures(vec![lost]))
                .ends_with("lost 22.0 MiB in 366 objects: definitely 365, and 1 that only these held.")
        );
    }

    /// Before, a list of 1000 objects whose first was lost counted as one object in the sum of all sites.
    #[test]
    fn the_sum_of_all_sites_counts_what_only_lost_objects_held() {
        let definite = |objects| Kinds { definite: Sum { objects, bytes: 64 * objects }, ..Kinds::default() };
        let list = SiteLeaks { led: Sum { objects: 999, bytes: 63_936 }, ..row("list", definite(1)) };
        let mut found = figures(vec![row("handle", definite(2000)), list]);
        found.kinds.indirect = Sum { objects: 999, bytes: 63_936 };
        let sentence = worst(&found).replace('\u{202f}', "");
        assert_eq!(
            sentence,
            "handle lost 125 KiB in 2000 objects: definitely. In all, 188 KiB in 3000 objects are lost: \
             definitely 2001, and 999 that only these held."
        );
    }

    #[test]
    fn other_kinds_come_when_nothing_is_definite() {
        let small = Sum { objects: 1, bytes: 8 };
        let idle = Kinds { reachable: SOME, idle: small, ..Kinds::default() };
        let possible = Kinds { possible: small, ..Kinds::default() };
        let both = figures(vec![row("f", idle), row("g\u{1b}[31m < main", possible)]);
        assert!(worst(&both).contains("lost 8 B in 1 object: possibly"), "{}", worst(&both));
        assert!(!worst(&both).contains('\u{1b}'), "escaped");
        assert!(worst(&figures(vec![row("f", idle)])).starts_with("Nothing is lost; f keeps 8 B"));
        let reachable = Kinds { reachable: small, ..Kinds::default() };
        let nothing = figures(vec![row("f", reachable)]);
        assert_eq!(worst(&nothing), "Nothing is lost: 8 B in 1 object are reachable at the end.");
        let plain = figures(vec![row("f", Kinds { unjudged: small, ..Kinds::default() })]);
        assert_eq!(worst(&plain), "f never freed 8 B in 1 object.");
        assert_eq!(worst(&figures(vec![])), "The trace has no objects.");
        let freed = LeakFigures { allocated: small, ..figures(vec![]) };
        assert_eq!(worst(&freed), "Everything was freed.");
    }

    /// Before, what was built at the start, or in a run of some ms, grew over the whole run.
    #[test]
    fn growth_has_the_unit_of_the_clock_that_shows_it_and_what_fills_or_is_short_is_stated() {
        let slope = |value| Slope { value, low: value - 1.0, high: value + 1.0 };
        let rise = Rise { per_mib: slope(10.0), per_s: Some(slope(20.0)), ..Rise::default() };
        let one = |in_time| Growing {
            name: "f < main".into(),
            rise: Rise { in_time, ..rise.clone() },
            ..Growing::default()
        };
        let found = |growing| LeakFigures { growing: vec![growing], ..figures(vec![]) };
        assert_eq!(worst(&found(one(true))), "f grows over the whole run: by 20 B a second (19 B to 21 B).");
        assert!(worst(&found(one(false))).ends_with("by 10 B for each MiB allocated (9 B to 11 B)."));
        let filled = Some(Filled { name: "f < main".into(), bytes: 2048, until_share: 0.05 });
        let fills = LeakFigures { filled, ..figures(vec![]) };
        let sentence = "Nothing grows: f rose to 2.00 KiB until 5.0 % of the time, then stayed.";
        assert_eq!(growth(&fills).as_deref(), Some(sentence));
        let short = LeakFigures { is_short: true, time_s: Some(0.02), ..figures(vec![]) };
        let why = too_short(&short).expect("it is short");
        assert!(why.contains("it lasts 20.0 ms, and the test needs 1.00 s"), "{why}");
        assert_eq!(growth(&short), Some(format!("Growth is not decided: {why}.")));
        assert!(
            too_short(&LeakFigures { time_s: None, ..short })
                .is_some_and(|why| why.contains("almost nothing"))
        );
    }
}
