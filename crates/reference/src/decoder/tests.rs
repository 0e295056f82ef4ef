use super::*;

#[derive(Default)]
struct Heard {
    references: Vec<(Owner, u64)>,
    costs: Vec<(Routine, u64, u64)>,
    threads: Vec<(u32, bool)>,
    kernel: Vec<(Owner, u64)>,
    passed: Vec<(Owner, u64)>,
}

impl Sink for Heard {
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

    fn passed(&mut self, owner: Owner, cost: Clock) {
        self.passed.push((owner, cost.instructions));
    }
}

fn reference(address: u64) -> u64 {
    Reference::new(address, 8, false).0
}

fn enter(routine: Routine, instructions: u64) -> Vec<u64> {
    vec![Kind::Enter.word(routine as u64), instructions, 0, 16, 0, 0]
}

fn leave(routine: Routine, instructions: u64) -> Vec<u64> {
    vec![Kind::Leave.word(routine as u64), instructions, 0, 4096]
}

fn announced(kind: u64, instructions: u64) -> Vec<u64> {
    vec![Kind::Announced.word(kind), instructions, 0, 0]
}

fn heard(parts: &[Vec<u64>]) -> (Decoder, Heard) {
    let (mut decoder, mut heard) = (Decoder::new(), Heard::default());
    decoder.decode(&parts.concat(), &mut heard).expect("sound words");
    (decoder, heard)
}

#[test]
fn references_belong_to_who_runs() {
    let (decoder, heard) = heard(&[
        vec![Kind::Thread.word(1), reference(1)],
        enter(Routine::Malloc, 100),
        vec![reference(2)],
        announced(COLLECTION_START, 110),
        vec![reference(3)],
        announced(COLLECTION_END, 150),
        vec![reference(4)],
        leave(Routine::Malloc, 170),
        vec![reference(5), Kind::Tick.word(0), 175, 0],
    ]);
    let owners = [Owner::Program, Owner::Allocator, Owner::Collector, Owner::Allocator, Owner::Program];
    assert_eq!(heard.references, owners.into_iter().zip(1..).collect::<Vec<_>>());
    assert_eq!(heard.costs, [(Routine::Malloc, 70, 40)]);
    assert_eq!(decoder.totals().map(|clock| clock.instructions), [105, 30, 40]);
}

#[test]
fn what_passed_is_told_with_its_owner_before_the_event() {
    let (_, heard) = heard(&[
        vec![Kind::KernelLoad.word(8), 1],
        enter(Routine::Malloc, 100),
        vec![Kind::KernelStore.word(8), 2],
        leave(Routine::Malloc, 130),
        vec![Kind::Tick.word(0), 180, 0],
    ]);
    assert_eq!(heard.kernel, [(Owner::Program, 1), (Owner::Allocator, 2)]);
    assert_eq!(heard.passed, [(Owner::Program, 100), (Owner::Allocator, 30), (Owner::Program, 50)]);
}

#[test]
fn a_handler_that_interrupts_a_routine_is_the_programs() {
    let (decoder, heard) = heard(&[
        enter(Routine::Free, 10),
        vec![Kind::Signal.word(14), 20, 0, reference(1)],
        enter(Routine::Malloc, 30),
        leave(Routine::Malloc, 36),
        vec![Kind::SignalEnd.word(0), 50, 0, reference(2)],
        leave(Routine::Free, 60),
    ]);
    assert_eq!(heard.references, [(Owner::Program, 1), (Owner::Allocator, 2)]);
    assert_eq!(heard.costs, [(Routine::Malloc, 6, 0), (Routine::Free, 20, 0)]);
    assert_eq!(decoder.totals().map(|clock| clock.instructions), [34, 26, 0]);
}

#[test]
fn a_thread_that_a_manager_starts_is_the_collectors() {
    let (decoder, heard) = heard(&[
        vec![Kind::Thread.word(1), Kind::ThreadStart.word(2), 1],
        enter(Routine::Malloc, 5),
        vec![Kind::ThreadStart.word(3), 1],
        leave(Routine::Malloc, 9),
        vec![
            Kind::Thread.word(3),
            reference(7),
            Kind::ThreadEnd.word(3),
            40,
            0,
            Kind::Thread.word(2),
            reference(8),
        ],
    ]);
    assert_eq!(heard.threads, [(2, false), (3, true)]);
    assert_eq!(heard.references, [(Owner::Collector, 7), (Owner::Program, 8)]);
    assert_eq!(decoder.totals().map(|clock| clock.instructions), [5, 4, 40]);
}

#[test]
fn a_thread_that_a_manager_starts_outside_of_a_call_is_the_collectors() {
    let (decoder, heard) = heard(&[vec![
        Kind::Thread.word(1),
        Kind::ThreadStart.word(2),
        1 | word::BY_MANAGER,
        Kind::Thread.word(2),
        Kind::Tick.word(0),
        30,
        0,
    ]]);
    assert_eq!(heard.threads, [(2, true)]);
    assert_eq!(decoder.totals().map(|clock| clock.instructions), [0, 0, 30]);
}

#[test]
fn counters_of_loads_and_stores_wrap() {
    let memory = |loads: u64, stores: u64| (stores << 32) | loads;
    let (decoder, _) = heard(&[
        vec![Kind::Tick.word(0), 1, memory(0xffff_fff0, 3)],
        vec![Kind::Tick.word(0), 2, memory(0x10, 5)],
    ]);
    assert_eq!(decoder.totals()[0], Clock { instructions: 2, loads: 0x1_0000_0010, stores: 5 });
}

#[test]
fn a_zero_or_half_an_event_ends_a_block_and_damage_is_told() {
    let mut decoder = Decoder::new();
    let mut sink = Heard::default();
    assert_eq!(decoder.decode(&[reference(1), 0, reference(2)], &mut sink), Ok(()));
    assert_eq!(decoder.decode(&[reference(3), Kind::Enter.word(1), 5], &mut sink), Ok(()));
    let wild = word::EVENT | (99 << word::KIND_SHIFT);
    assert_eq!(decoder.decode(&[reference(4), wild], &mut sink), Err(Damage { at: 1, word: wild }));
    assert_eq!(sink.references.len(), 3);
}

proptest::proptest! {
    /// Whatever the words are, nothing is read beyond them and nothing panics.
    #[test]
    fn wild_words_do_not_lead_astray(words in proptest::collection::vec(wild(), 0..200)) {
        let _ = Decoder::new().decode(&words, &mut Heard::default());
    }
}

fn wild() -> impl proptest::strategy::Strategy<Value = u64> {
    use proptest::prelude::*;
    prop_oneof![
        any::<u64>(),
        (0u64..26, 0u64..20).prop_map(|(kind, payload)| word::EVENT | (kind << word::KIND_SHIFT) | payload),
        0u64..1000,
    ]
}
