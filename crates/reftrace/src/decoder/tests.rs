use super::*;

#[derive(Default)]
struct Decoded {
    references: Vec<(Owner, u64)>,
    costs: Vec<(Routine, u64, u64)>,
    threads: Vec<(u32, bool)>,
    kernel: Vec<(Owner, u64)>,
    executed: Vec<(Owner, u64)>,
}

impl Sink for Decoded {
    fn references(&mut self, owner: Owner, references: &[Reference]) {
        self.references.extend(references.iter().map(|reference| (owner, reference.address())));
    }

    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Leave { routine, cost, collector, .. } => {
                self.costs.push((*routine, cost.instructions, collector.instructions));
            }
            Event::ThreadStart { thread, manager, .. } => self.threads.push((*thread, *manager)),
            Event::Kernel { owner, address, .. } => self.kernel.push((*owner, *address)),
            _ => {}
        }
    }

    fn executed(&mut self, owner: Owner, cost: Clock) {
        self.executed.push((owner, cost.instructions));
    }
}

fn reference(address: u64) -> u64 {
    Reference::new(address, 8, false).0
}

fn enter(routine: Routine, instructions: u64) -> Vec<u64> {
    vec![EventKind::Enter.word(routine as u64), instructions, 0, 16, 0, 0]
}

fn leave(routine: Routine, instructions: u64) -> Vec<u64> {
    vec![EventKind::Leave.word(routine as u64), instructions, 0, 4096]
}

fn announced(kind: u64, instructions: u64) -> Vec<u64> {
    vec![EventKind::Announced.word(kind), instructions, 0, 0]
}

fn decoded(parts: &[Vec<u64>]) -> (Decoder, Decoded) {
    let (mut decoder, mut decoded) = (Decoder::new(), Decoded::default());
    decoder.decode(&parts.concat(), &mut decoded).expect("sound words");
    (decoder, decoded)
}

#[test]
fn references_belong_to_the_owner_that_runs() {
    let (decoder, decoded) = decoded(&[
        vec![EventKind::Thread.word(1), reference(1)],
        enter(Routine::Malloc, 100),
        vec![reference(2)],
        announced(COLLECTION_START, 110),
        vec![reference(3)],
        announced(COLLECTION_END, 150),
        vec![reference(4)],
        leave(Routine::Malloc, 170),
        vec![reference(5), EventKind::Tick.word(0), 175, 0],
    ]);
    let owners = [Owner::Program, Owner::Allocator, Owner::Collector, Owner::Allocator, Owner::Program];
    assert_eq!(decoded.references, owners.into_iter().zip(1..).collect::<Vec<_>>());
    assert_eq!(decoded.costs, [(Routine::Malloc, 70, 40)]);
    assert_eq!(decoder.totals().map(|clock| clock.instructions), [105, 30, 40]);
}

#[test]
fn executed_instructions_are_reported_with_their_owner_before_the_event() {
    let (_, decoded) = decoded(&[
        vec![EventKind::KernelLoad.word(8), 1],
        enter(Routine::Malloc, 100),
        vec![EventKind::KernelStore.word(8), 2],
        leave(Routine::Malloc, 130),
        vec![EventKind::Tick.word(0), 180, 0],
    ]);
    assert_eq!(decoded.kernel, [(Owner::Program, 1), (Owner::Allocator, 2)]);
    assert_eq!(decoded.executed, [(Owner::Program, 100), (Owner::Allocator, 30), (Owner::Program, 50)]);
}

#[test]
fn a_handler_that_interrupts_a_routine_is_the_programs() {
    let (decoder, decoded) = decoded(&[
        enter(Routine::Free, 10),
        vec![EventKind::Signal.word(14), 20, 0, reference(1)],
        enter(Routine::Malloc, 30),
        leave(Routine::Malloc, 36),
        vec![EventKind::SignalEnd.word(0), 50, 0, reference(2)],
        leave(Routine::Free, 60),
    ]);
    assert_eq!(decoded.references, [(Owner::Program, 1), (Owner::Allocator, 2)]);
    assert_eq!(decoded.costs, [(Routine::Malloc, 6, 0), (Routine::Free, 20, 0)]);
    assert_eq!(decoder.totals().map(|clock| clock.instructions), [34, 26, 0]);
}

#[test]
fn a_thread_that_a_manager_starts_is_the_collectors() {
    let (decoder, decoded) = decoded(&[
        vec![EventKind::Thread.word(1), EventKind::ThreadStart.word(2), 1],
        enter(Routine::Malloc, 5),
        vec![EventKind::ThreadStart.word(3), 1],
        leave(Routine::Malloc, 9),
        vec![
            EventKind::Thread.word(3),
            reference(7),
            EventKind::ThreadEnd.word(3),
            40,
            0,
            EventKind::Thread.word(2),
            reference(8),
        ],
    ]);
    assert_eq!(decoded.threads, [(2, false), (3, true)]);
    assert_eq!(decoded.references, [(Owner::Collector, 7), (Owner::Program, 8)]);
    assert_eq!(decoder.totals().map(|clock| clock.instructions), [5, 4, 40]);
}

#[test]
fn a_thread_that_a_manager_starts_outside_of_a_call_is_the_collectors() {
    let (decoder, decoded) = decoded(&[vec![
        EventKind::Thread.word(1),
        EventKind::ThreadStart.word(2),
        1 | word::BY_MANAGER,
        EventKind::Thread.word(2),
        EventKind::Tick.word(0),
        30,
        0,
    ]]);
    assert_eq!(decoded.threads, [(2, true)]);
    assert_eq!(decoder.totals().map(|clock| clock.instructions), [0, 0, 30]);
}

#[test]
fn counters_of_loads_and_stores_wrap() {
    let memory = |loads: u64, stores: u64| (stores << 32) | loads;
    let (decoder, _) = decoded(&[
        vec![EventKind::Tick.word(0), 1, memory(0xffff_fff0, 3)],
        vec![EventKind::Tick.word(0), 2, memory(0x10, 5)],
    ]);
    assert_eq!(decoder.totals()[0], Clock { instructions: 2, loads: 0x1_0000_0010, stores: 5 });
}

#[test]
fn a_zero_or_half_an_event_ends_a_block_and_damage_is_reported() {
    let mut decoder = Decoder::new();
    let mut sink = Decoded::default();
    assert_eq!(decoder.decode(&[reference(1), 0, reference(2)], &mut sink), Ok(()));
    assert_eq!(decoder.decode(&[reference(3), EventKind::Enter.word(1), 5], &mut sink), Ok(()));
    let corrupted = word::EVENT | (99 << word::KIND_SHIFT);
    assert_eq!(decoder.decode(&[reference(4), corrupted], &mut sink), Err(Damage { at: 1, word: corrupted }));
    assert_eq!(sink.references.len(), 3);
}

proptest::proptest! {
    /// For all words, the decoder stays within the slice and does not panic.
    #[test]
    fn corrupted_words_neither_panic_nor_read_out_of_bounds(words in proptest::collection::vec(corrupted(), 0..200)) {
        let _ = Decoder::new().decode(&words, &mut Decoded::default());
    }
}

fn corrupted() -> impl proptest::strategy::Strategy<Value = u64> {
    use proptest::prelude::*;
    prop_oneof![
        any::<u64>(),
        (0u64..26, 0u64..20).prop_map(|(kind, payload)| word::EVENT | (kind << word::KIND_SHIFT) | payload),
        0u64..1000,
    ]
}
