//! The trials that every historic collector must pass: random graphs against a model that knows what is reachable,
//! garbage, limits, collections that are aborted. The roots are those that a trial gives.
//!
//! A collector's test is one line, [`collector_trials!`](collector_trials!), over its
//! [`heaptoll_historic::support::Collector`].

pub mod graph;
pub mod objects;
pub mod program;
pub mod refusals;

/// The tests of a collector, in a module of this name.
macro_rules! collector_trials {
    ($name:ident, $heap:ty) => {
        mod $name {
            use super::*;

            #[test]
            fn random_graphs_keep_exactly_what_is_reachable() {
                $crate::kit::collector::graph::random_graphs_keep_exactly_what_is_reachable::<$heap>();
            }

            #[test]
            fn random_graphs_stay_whole_while_memory_is_refused() {
                $crate::kit::collector::graph::random_graphs_stay_whole_while_memory_is_refused::<$heap>();
            }

            #[test]
            fn a_list_is_kept_by_a_pointer_to_the_inside_of_its_first() {
                $crate::kit::collector::objects::a_list_is_kept_by_a_pointer_to_the_inside_of_its_first::<$heap>();
            }

            #[test]
            fn garbage_in_a_loop_keeps_the_heap_at_a_size() {
                $crate::kit::collector::objects::garbage_in_a_loop_keeps_the_heap_at_a_size::<$heap>();
            }

            #[test]
            fn what_is_reclaimed_is_zero_when_it_is_handed_out_again() {
                $crate::kit::collector::objects::what_is_reclaimed_is_zero_when_it_is_handed_out_again::<$heap>();
            }

            #[test]
            fn what_realloc_moved_is_freed_and_what_it_kept_holds_nothing_after_its_end() {
                $crate::kit::collector::objects::what_realloc_moved_is_freed_and_what_it_kept_holds_nothing_after_its_end::<
                    $heap,
                >();
            }

            #[test]
            fn large_objects_live_by_any_word_into_them_and_go_with_their_chunks() {
                $crate::kit::collector::objects::large_objects_live_by_any_word_into_them_and_go_with_their_chunks::<$heap>();
            }

            #[test]
            fn a_word_on_a_free_list_does_not_keep_the_list_alive() {
                $crate::kit::collector::objects::a_word_on_a_free_list_does_not_keep_the_list_alive::<$heap>();
            }

            #[test]
            fn aligned_objects_are_kept_and_reclaimed_like_others() {
                $crate::kit::collector::objects::aligned_objects_are_kept_and_reclaimed_like_others::<$heap>();
            }

            #[test]
            fn a_full_heap_refuses_instead_of_collecting_for_every_block() {
                $crate::kit::collector::refusals::a_full_heap_refuses_instead_of_collecting_for_every_block::<$heap>();
            }

            #[test]
            fn without_more_memory_what_is_dead_is_used_again() {
                $crate::kit::collector::refusals::without_more_memory_what_is_dead_is_used_again::<$heap>();
            }

            #[test]
            fn what_no_process_can_have_is_refused_without_a_collection() {
                $crate::kit::collector::refusals::what_no_process_can_have_is_refused_without_a_collection::<$heap>();
            }

            #[test]
            fn a_collection_that_is_given_up_reclaims_nothing_and_the_next_does() {
                $crate::kit::collector::refusals::a_collection_that_is_given_up_reclaims_nothing_and_the_next_does::<$heap>();
            }
        }
    };
}

pub(crate) use collector_trials;
