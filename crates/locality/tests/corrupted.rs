//! A process may write anything into its ring.

#[path = "../../reftrace/tests/support/corrupted.rs"]
mod corrupted;

use heaptoll_locality::image::{ImageSimulator, Plan};
use heaptoll_locality::machine::Machine;
use heaptoll_locality::simulation::Settings;

#[test]
fn corrupted_words_give_wrong_figures_without_a_panic() {
    let plan = Plan::new(Settings::default(), Machine::usual(), true).expect("a plan");
    corrupted::streams_are_survived(
        4,
        || ImageSimulator::new(&plan),
        |simulator, _| drop(simulator.finish()),
    );
}
