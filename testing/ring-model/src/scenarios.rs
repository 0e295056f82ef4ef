//! What threads do in the models, and what must hold then.

mod death;
mod exploration;
mod gate;
mod order;
mod registration;
mod space;

pub use death::a_killed_thread_leaves_whole_events;
pub use exploration::explore;
pub use gate::{a_pause_ends, facts_arrive_whole};
pub use order::{events_that_depend_on_each_other_arrive_in_order, no_event_of_a_running_thread_is_given_up};
pub use registration::{
    a_registration_wakes_the_tool, a_ring_is_used_again, processes_register_at_once, threads_share_a_ring,
};
pub use space::{a_full_ring_waits_and_wraps, a_ring_grows_while_it_is_read, groups_arrive_whole};
