//! What a process wrote into its ring may be anything.

#[path = "../../reference/tests/support/wild.rs"]
mod wild;

use heaptoll_locality::image::{Listener, Plan};
use heaptoll_locality::machine::Machine;
use heaptoll_locality::simulation::Settings;

#[test]
fn wild_words_give_wild_figures_and_no_more() {
    let plan = Plan::new(Settings::default(), Machine::usual(), true).expect("a plan");
    wild::streams_are_survived(4, || Listener::new(&plan), |listener, _| drop(listener.heard()));
}
