//! What a process wrote into its ring may be anything.

#[path = "../../reference/tests/support/wild.rs"]
mod wild;

use heaptoll_drag::{About, Asked, Clock, Drag};

#[test]
fn wild_words_give_wild_figures_and_no_more() {
    for (collector, clock) in [(false, Clock::Instructions), (true, Clock::Bytes)] {
        let asked = Asked { clock, sites: true, pointers: true, frames: 3 };
        wild::streams_are_survived(
            100,
            || Drag::new(About { collector }),
            |drag, _| drop(drag.figures(asked)),
        );
    }
}
