//! A process may write anything into its ring.

#[path = "../../reftrace/tests/support/corrupted.rs"]
mod corrupted;

use heaptoll_drag::{Clock, Drag, FigureOptions, ManagerInfo};

#[test]
fn corrupted_words_give_wrong_figures_without_a_panic() {
    for (collector, clock) in [(false, Clock::Instructions), (true, Clock::Bytes)] {
        let options = FigureOptions { clock, sites: true, depth: 12, pointers: true, frames: 3 };
        corrupted::streams_are_survived(
            100,
            || Drag::new(ManagerInfo { collector }),
            |drag, _| drop(drag.figures(options)),
        );
    }
}
