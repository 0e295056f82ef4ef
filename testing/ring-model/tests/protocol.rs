//! The protocol as it is: every scenario holds in every order that interrupts threads a few times; `make test-slow`
//! interrupts them once more.

use heaptoll_ring_model::scenarios::{self, explore};

/// Explores a scenario in more than one order.
fn holds(scenario: fn(), preemptions: usize) {
    let executions = explore(scenario, preemptions, None);
    println!("{executions} executions");
    assert!(executions > 10, "threads meet: {executions} executions");
}

/// The scenarios, with how often a thread is interrupted at most, and how often slowly.
macro_rules! scenarios {
    ($($name:ident $preemptions:literal, $slowly:literal;)*) => {
        $(
            #[test]
            fn $name() {
                holds(scenarios::$name, $preemptions);
            }
        )*

        mod interrupted_once_more {
            $(
                #[test]
                #[ignore = "slow: up to some minutes"]
                fn $name() {
                    super::holds(super::scenarios::$name, $slowly);
                }
            )*
        }
    };
}

scenarios! {
    groups_arrive_whole 2, 3;
    a_full_ring_waits_and_wraps 2, 3;
    a_ring_grows_while_it_is_read 2, 3;
    processes_register_at_once 2, 3;
    a_registration_wakes_the_tool 2, 3;
    events_that_depend_on_each_other_arrive_in_order 1, 2;
    no_event_of_a_running_thread_is_given_up 0, 1;
    a_pause_ends 2, 3;
    facts_arrive_whole 2, 3;
    a_ring_is_used_again 1, 2;
    threads_share_a_ring 2, 3;
}

#[test]
fn a_killed_thread_leaves_whole_events() {
    scenarios::a_killed_thread_leaves_whole_events(1, None);
}
