//! One self-contained page: charts and tables of an experiment, for paper, phones and the dark.

mod amount_axis;
mod chart_registry;
mod charts;
pub mod curves;
pub mod document;
mod drawing;
mod engine;
mod grid;
mod items;
mod page;
mod palette;
mod program;
mod ratio_axis;
mod sparkline;
mod views;

use askama::Template;
use heaptoll_experiment::comparison::Comparison;
use heaptoll_experiment::experiment::Experiment;

use crate::ReportError;
use chart_registry::ChartRegistry;

/// One page that needs nothing but itself: no network, no other file. About 1.9 MB, nearly all of it the charting
/// library.
///
/// # Errors
/// `Encode` when the page cannot be put together, which no experiment should bring about.
pub fn render(experiment: &Experiment, comparison: &Comparison) -> Result<String, ReportError> {
    let mut registry = ChartRegistry::default();
    let mut page = page::Page::new(experiment, comparison, &mut registry);
    page.engine = engine::packed()?;
    page.charts = registry.json();
    page.render().map_err(|error| ReportError::Encode { form: "HTML", detail: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{HOSTILE, Shape, experiment};

    #[test]
    fn nothing_a_user_wrote_becomes_markup() {
        let (experiment, comparison) = experiment(Shape::Troubled);
        let page = render(&experiment, &comparison).unwrap();
        assert!(!page.contains(HOSTILE) && !page.contains("<script>document.title"));
        assert!(!page.contains("<script>alert") && !page.contains("</pre><script"));
        assert!(!page.contains('\u{1b}') && !page.contains('\u{202e}') && !page.contains('\0'));
        // The three scripts of the page itself: engine, charts, page.
        assert_eq!(page.matches("<script").count(), 3);
        assert_eq!(page.matches("</script>").count(), 3);
    }

    #[test]
    fn the_page_loads_nothing_outside_itself() {
        let (experiment, comparison) = experiment(Shape::Suite);
        let page = render(&experiment, &comparison).unwrap();
        for needle in ["src=", "<link", "@import", "url(", "http-equiv=\"refresh\""] {
            assert!(!page.contains(needle), "{needle}");
        }
        assert!(page.contains("default-src 'none'"));
        assert!(page.len() < 3_700_000, "{} bytes", page.len());
    }

    #[test]
    fn tables_carry_the_figures_of_the_charts() {
        for shape in Shape::ALL {
            let (experiment, comparison) = experiment(shape);
            let page = render(&experiment, &comparison).unwrap();
            for table in &comparison.tables {
                for interval in
                    table.rows.iter().flat_map(|r| r.figures.values()).filter_map(|f| f.ratio.as_ref())
                {
                    let text = crate::format::interval(interval);
                    let (ratio, rest) = text.split_once(' ').unwrap();
                    assert!(page.contains(ratio) && page.contains(rest), "{shape:?} {text}");
                }
            }
            for (_, stack, reason) in &experiment.refused {
                assert!(page.contains(stack) && page.contains(reason));
            }
        }
    }

    #[test]
    fn a_program_without_a_section_is_named_with_its_reason() {
        let (mut experiment, comparison) = experiment(Shape::Single);
        experiment.refused.push(("stat".into(), "glibc".into(), "statically linked".into()));
        let page = render(&experiment, &comparison).unwrap();
        assert!(page.contains("stat is left out, refused under glibc: statically linked"));
    }

    #[test]
    fn counters_are_shown_where_the_machine_has_them() {
        let shown = |shape| {
            let (experiment, comparison) = experiment(shape);
            let page = render(&experiment, &comparison).unwrap();
            ["Cycles 10⁹", "Cache misses 10⁶", "TLB misses 10⁶"].map(|heading| page.contains(heading))
        };
        assert_eq!(shown(Shape::Suite), [true; 3]);
        assert_eq!(shown(Shape::Single), [false; 3]);
    }

    #[test]
    fn an_experiment_without_a_row_is_still_a_page() {
        let (mut experiment, mut comparison) = experiment(Shape::Single);
        experiment.observations.clear();
        experiment.tracks.clear();
        comparison.tables[0].rows.clear();
        let page = render(&experiment, &comparison).unwrap();
        assert!(page.contains("No row was measured"));
    }
}
