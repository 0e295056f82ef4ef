//! Errors of the protocol: each is found by the scenario that it breaks.

use std::any::Any;
use std::panic::catch_unwind;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};

use heaptoll_ring_model::mutant::Change::{Add, Late, Order, Skip, Torn};
use heaptoll_ring_model::mutant::{Mutant, hits};
use heaptoll_ring_model::scenarios::{self, explore};

fn message(payload: &dyn Any) -> &str {
    let literal = payload.downcast_ref::<&str>().copied();
    literal.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text")
}

/// Explores a scenario with an error, and requires that it fails as expected.
fn finds(scenario: fn(), preemptions: usize, mutant: Mutant, expected: &str) {
    let result = catch_unwind(|| explore(scenario, preemptions, Some(&mutant)));
    assert!(hits() > 0, "the scenario does not get to {}: {}", mutant.file, mutant.line);
    let payload = result.expect_err("the error is found");
    let found = message(&*payload);
    assert!(found.contains(expected), "found as: {found}");
}

macro_rules! mutants {
    ($($name:ident: $scenario:ident $preemptions:literal, $file:literal $line:literal $change:expr, $expected:literal;)*) => {
        $(
            #[test]
            fn $name() {
                let mutant = Mutant { file: $file, line: $line, change: $change };
                finds(scenarios::$scenario, $preemptions, mutant, $expected);
            }
        )*
    };
}

mutants! {
    // Words.
    a_first_word_is_stored_without_release: groups_arrive_whole 2,
        "state.rs" "store(first | lap, Ordering::Release)" Order(Relaxed), "a group arrives whole";
    a_word_is_loaded_without_acquire: groups_arrive_whole 2,
        "tool/decode.rs" "(*self.words.wrapping_add(at)).load(Ordering::Acquire)" Order(Relaxed),
        "a group arrives whole";
    a_first_word_is_stored_before_the_others: groups_arrive_whole 2,
        "state.rs" "store(word | lap, Ordering::Relaxed)" Late, "a group arrives whole";
    // Space.
    a_block_is_written_before_it_is_read: a_full_ring_waits_and_wraps 2,
        "wait.rs" "let taken = consumer.taken.load(Ordering::Acquire)" Add(1), "arrive";
    a_producer_sleeps_unannounced: a_full_ring_waits_and_wraps 2,
        "wait.rs" "consumer.waiting.store(1, Ordering::SeqCst)" Skip, "what is recorded arrives";
    a_waiting_producer_is_not_woken: a_full_ring_waits_and_wraps 2,
        "tool/decode.rs" "futex_wake(&consumer.taken)" Skip, "what is recorded arrives";
    // Registration.
    a_ring_is_claimed_in_two_steps: processes_register_at_once 2,
        "attach.rs" "owner.compare_exchange(0, owner_id" Torn, "a process has its events";
    an_entry_is_claimed_in_two_steps: processes_register_at_once 2,
        "attach.rs" "entry.compare_exchange(state::FREE, claim" Torn, "a process has its events";
    a_list_is_extended_in_two_steps: processes_register_at_once 2,
        "attach.rs" "newest.compare_exchange_weak(head, index as u32 + 1" Torn, "a process has its events";
    a_process_registers_in_no_order_with_the_doorbell: a_registration_wakes_the_tool 2,
        "attach.rs" "newest.compare_exchange_weak(head, index as u32 + 1" Order(AcqRel), "deadlock";
    the_tool_sleeps_in_no_order_with_registrations: a_registration_wakes_the_tool 2,
        "tool/shared.rs" "bell.store(1, Ordering::SeqCst)" Order(Relaxed), "deadlock";
    a_sleeping_tool_is_not_woken: a_registration_wakes_the_tool 2,
        "wait.rs" "sys::futex_wake(&header.doorbell.0)" Skip, "deadlock";
    a_ring_is_freed_before_it_is_zeroed: a_ring_is_used_again 1,
        "tool/map.rs" "control.owner.0.id.store(0, Ordering::Release)" Order(Relaxed), "each event arrives once";
    // Order.
    a_second_thread_does_not_request_numbers: events_that_depend_on_each_other_arrive_in_order 1,
        "attach.rs" "if thread > 0 { … fetch_or(gate::SEQUENCED" Skip, "precedes the";
    a_number_is_taken_in_two_steps: no_event_of_a_running_thread_is_given_up 0,
        "emit.rs" "sequence.0.fetch_add(1, Ordering::AcqRel)" Torn, "each event has a number of its own";
    a_number_is_taken_without_release: no_event_of_a_running_thread_is_given_up 0,
        "emit.rs" "sequence.0.fetch_add(1, Ordering::AcqRel)" Order(Relaxed), "no event is given up";
    a_thread_is_marked_busy_after_its_number: no_event_of_a_running_thread_is_given_up 0,
        "emit.rs" "busy.store(1, Ordering::Relaxed)" Late, "no event is given up";
    a_thread_is_free_before_its_words: no_event_of_a_running_thread_is_given_up 0,
        "emit.rs" "busy.store(0, Ordering::Release)" Order(Relaxed), "no event is given up";
    // Threads without a ring.
    a_lock_is_taken_in_two_steps: threads_share_a_ring 2,
        "lock.rs" "match word.compare_exchange_weak(0, holder" Torn, "";
    // The gate.
    a_paused_thread_is_not_woken: a_pause_ends 2,
        "tool/shared.rs" "impl Drop for Paused … futex_wake(gate)" Skip, "deadlock";
    facts_are_answered_twice: facts_arrive_whole 2,
        "wait.rs" "facts_answered.load(Ordering::Relaxed) == request" Add(7), "the facts are one thread's";
    facts_are_answered_by_two_at_once: facts_arrive_whole 2,
        "wait.rs" "facts_lock.compare_exchange(0, 1" Torn, "the facts are one thread's";
    facts_are_published_without_release: facts_arrive_whole 2,
        "wait.rs" "facts_answered.store(request, Ordering::Release)" Order(Relaxed), "the facts are one thread's";
}

#[test]
fn a_killed_thread_leaves_part_of_a_group() {
    let mutant = Mutant { file: "state.rs", line: "store(word | lap, Ordering::Relaxed)", change: Late };
    let result = catch_unwind(|| scenarios::a_killed_thread_leaves_whole_events(0, Some(&mutant)));
    let payload = result.expect_err("the error is found");
    assert!(message(&*payload).contains("whole"), "found as: {}", message(&*payload));
}
