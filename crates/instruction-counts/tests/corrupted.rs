//! A process may write anything into its ring.

#[path = "../../reftrace/tests/support/corrupted.rs"]
mod corrupted;

use heaptoll_instruction_counts::Costs;

#[test]
fn corrupted_words_give_wrong_figures_without_a_panic() {
    corrupted::streams_are_survived(60, Costs::new, |costs, decoder| {
        let figures = costs.figures(decoder.totals());
        let _ = (figures.amounts.tables(), figures.amounts.instructions(), figures.amounts.allocation());
    });
}
