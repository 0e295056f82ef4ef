//! What a process wrote into its ring may be anything.

#[path = "../../reference/tests/support/wild.rs"]
mod wild;

use heaptoll_costs::Costs;

#[test]
fn wild_words_give_wild_figures_and_no_more() {
    wild::streams_are_survived(60, Costs::new, |costs, decoder| {
        let figures = costs.figures(decoder.totals());
        let _ = (figures.amounts.tables(), figures.amounts.instructions(), figures.amounts.allocation());
    });
}
