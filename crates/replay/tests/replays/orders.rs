//! Calls reach the manager as they were recorded.

use heaptoll_replay::job::{Pass, Touch};
use heaptoll_replay::program::Order;

use crate::fixture::{glibc, job, outcome, program, trace};

fn traces_come_to_their_end(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        for threads in [1, 2, 7] {
            let events = trace(seed, 6000, threads, 100_000);
            for order in [Order::Exact, Order::PerThread] {
                let program = program(&events, order);
                assert_eq!(program.facts.calls, 6000);
                for pass in [Pass::Throughput, Pass::Latency, Pass::Memory] {
                    for touch in [Touch::None, Touch::Write, Touch::All] {
                        let found = outcome(&glibc(), &program, &job(&program, pass, touch));
                        assert_eq!(found.calls, 6000);
                        if pass == Pass::Memory && (order == Order::Exact || threads == 1) {
                            assert_eq!(found.max_live_bytes, program.facts.max_live_bytes);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_random_trace_comes_to_its_end_in_every_order_and_pass() {
    traces_come_to_their_end(0..1);
}

#[test]
#[ignore = "slow: seven seeds more, 378 runs of the driver"]
fn random_traces_come_to_their_end_in_every_order_and_pass() {
    traces_come_to_their_end(1..8);
}

/// The answer went through a pipe once, which was not read before the driver had ended.
#[test]
fn an_answer_that_is_longer_than_a_pipe_arrives() {
    let program = program(&trace(3, 2000, 1, 1000), Order::Exact);
    let job = heaptoll_replay::job::Job { repetitions: 2000, ..job(&program, Pass::Memory, Touch::None) };
    assert_eq!(outcome(&glibc(), &program, &job).repetitions.len(), 2000);
}
