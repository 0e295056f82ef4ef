//! The suite over our managers with every assertion, which `make checked` builds. The fast tests have Tithe's under proof
//! (`proof`).

use heaptoll_experiment::manager::{self, Manager, ManagerSource};
use heaptoll_experiment::places::Places;

use crate::managers::conform;

#[test]
#[ignore = "slow: some 50 CPU seconds, and 35 to compile the managers"]
fn every_manager_of_ours_conforms_with_every_assertion() {
    let places = Places::at(&heaptoll_testing::staged::home().join("../../checked"));
    let managers = manager::known(&places).expect("the managers can be listed");
    let ours: Vec<Manager> = managers.into_iter().filter(|one| one.kind == ManagerSource::Built).collect();
    for name in ["lea", "tithe", "tithe-collect", "tithe-explicit", "treadmill"] {
        assert!(ours.iter().any(|one| one.name == name), "{name} is missing: run make checked");
    }
    conform(&places, &ours, 1);
}
