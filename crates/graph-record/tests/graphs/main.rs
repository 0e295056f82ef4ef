//! Programs whose graphs are known (`cases.c`), under the real tracer: the edges at the end are exactly those expected.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::LazyLock;

use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::launch::Invocation;
use heaptoll_experiment::places::Places;
use heaptoll_graph_record::Recorder;
use heaptoll_launcher::Ended;
use heaptoll_reftrace_host::{Options, Tracer, trace};
use heaptoll_trace::graph::{Batch, Event, FreeCause, Reader, RootKind, Writer};
use heaptoll_trace::{Ending, Header, Settings};

/// An edge by the sizes of its objects.
type Edge = (u64, u64, u64, u64);

/// What the program's trace holds.
#[derive(Default)]
struct Graph {
    /// At the end, of objects by size.
    edges: BTreeSet<Edge>,
    events: Vec<Event>,
    sizes: HashMap<u64, u64>,
}

impl Graph {
    fn apply(&mut self, alive: &mut BTreeMap<(u64, u64), (u64, u64)>, event: Event) {
        match event {
            Event::Allocate { object, size, .. } => {
                self.sizes.insert(object, size);
            }
            Event::Edge { from, offset, to, to_offset } => {
                alive.insert((from, offset), (to, to_offset));
            }
            Event::Clear { from, offset } => {
                assert!(alive.remove(&(from, offset)).is_some(), "no edge is cleared at {from}+{offset}");
            }
            Event::Free { object, .. } => alive.retain(|from, to| from.0 != object && to.0 != object),
            _ => {}
        }
        self.events.push(event);
    }
}

fn record(source: &str, every: u32) -> Graph {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, binary) = (folder.path().join("cases.c"), folder.path().join("cases"));
    std::fs::write(&file, source).expect("writes");
    let compiled = std::process::Command::new("cc")
        .args(["-O1", "-fno-builtin", "-fno-tree-vectorize", "-pthread", "-o"])
        .args([&binary, &file])
        .status()
        .expect("a C compiler");
    assert!(compiled.success());
    let places = Places::at(&heaptoll_testing::staged::home());
    let tracer = Tracer::find(&places).expect("the tracer");
    let invocation = Invocation { command: vec![binary.into_os_string()], ..Invocation::default() };
    let options = Options { references: true, graph: true, roots_every_bytes: every, ..Options::default() };
    let begin = |_: &_| {
        let writer = Writer::new(Vec::new(), &Header::default(), &Settings::default()).expect("writes");
        Recorder::new(writer, false)
    };
    let mut traced = trace(&tracer, &places.launcher(), &invocation, &options, &Interrupt::default(), begin)
        .expect("traces");
    assert_eq!((traced.finished.ended, &traced.warnings), (Ended::Exit(0), &vec![]));
    let (bytes, _, refused) =
        traced.images.remove(0).sink.finish(&Ending::default()).expect("memory takes everything");
    assert!(refused.is_none());
    let mut reader = Reader::with_name(&bytes[..], "the trace").expect("a trace");
    let (mut graph, mut batch, mut alive) = (Graph::default(), Batch::default(), BTreeMap::new());
    while reader.read(&mut batch).expect("memory") {
        batch.events.iter().for_each(|event| graph.apply(&mut alive, *event));
    }
    assert_eq!(reader.tables().warnings, Vec::<String>::new());
    let size = |object: u64| graph.sizes[&object];
    graph.edges = alive
        .iter()
        .map(|((from, offset), (to, to_offset))| (size(*from), *offset, size(*to), *to_offset))
        .collect();
    graph
}

static CASES: LazyLock<Graph> = LazyLock::new(|| record(include_str!("cases.c"), 4096));

fn size(case: u64, block: u64) -> u64 {
    1000 * case + 8 * block
}

/// Edges from the blocks of a case, by their numbers in it.
fn edges(case: u64) -> Vec<Edge> {
    let block = |of: u64| if of >> 20 != 0 { of } else { (of - 1000 * case) / 8 };
    let of_case = |size: u64| (1000 * case..1000 * (case + 1)).contains(&size);
    let edges = CASES.edges.iter().filter(|edge| of_case(edge.0) && (of_case(edge.2) || edge.2 >> 20 != 0));
    edges.map(|(from, offset, to, to_offset)| (block(*from), *offset, block(*to), *to_offset)).collect()
}

#[test]
fn a_store_of_a_word_makes_replaces_and_ends_an_edge() {
    assert_eq!(edges(1), [(1, 0, 2, 0), (1, 8, 2, 0), (2, 16, 3, 5), (3, 8, 3, 0)]);
}

#[test]
fn a_store_to_a_part_of_a_word_ends_its_edge_and_one_to_all_parts_makes_one() {
    assert_eq!(edges(2), [(1, 40, 2, 0), (1, 64, 2, 0), (1, 72, 2, 0)]);
}

#[test]
fn vectors_store_several_words_at_any_address() {
    let expected = [
        (1, 0, 2, 0),
        (1, 8, 3, 0),
        (1, 32, 2, 0),
        (1, 48, 3, 0),
        (1, 56, 2, 1),
        (1, 64, 2, 0),
        (1, 88, 2, 1),
    ];
    assert_eq!(edges(3), expected);
}

#[test]
fn copies_copy_edges() {
    let of = |at: u64| if at % 2 == 1 { (2, 0) } else { (3, at) };
    let mut expected = Vec::new();
    // After memmove: a[0] as it was, a[1] to a[6] those before them, a[7]; a[8] is overwritten in part.
    for (at, was) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 3), (5, 4), (6, 5), (7, 7), (9, 9)] {
        expected.push((1, 8 * at, of(was).0, of(was).1));
    }
    for (at, was) in [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (6, 0), (7, 1)] {
        expected.push((4, 8 * at, of(was).0, of(was).1));
    }
    expected.extend((0..500).filter(|at| at % 3 == 0).map(|at| (65, 8 * at, 3, 0)));
    assert_eq!(edges(4), expected);
}

#[test]
fn system_calls_overwrite_words_and_bring_pointers() {
    let expected =
        [(0, 3), (2, 2), (4, 2), (7, 2), (9, 2), (10, 2), (11, 2)].map(|(at, to)| (1, 8 * at, to, 0));
    assert_eq!(edges(5), expected);
}

#[test]
fn a_realloc_that_moves_takes_the_edges_along_and_one_in_place_keeps_those_to_it() {
    let expected = [
        // In place.
        (3, 8, 6, 24),
        (6, 8, 6, 8),
        (7, 16, 2, 0),
        // Moved: what pointed to the old block, also from itself, dangles.
        (120, 0, 2, 0),
        (120, 24, 3, 16),
        (120, 56, 2, 0),
    ];
    let found = CASES.edges.iter().filter(|edge| (6000..8000).contains(&edge.0) && edge.2 / 1000 == 6);
    let block = |of: u64| (of - 6000) / 8;
    let found: Vec<Edge> = found.map(|edge| (block(edge.0), edge.1, block(edge.2), edge.3)).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_block_that_mremap_moves_keeps_its_edges() {
    let large = 1 << 20;
    let all = CASES.edges.iter().filter(|edge| edge.0 == 16 * large || edge.2 >= large);
    let expected = [
        (size(7, 2), 8, 16 * large, 0),
        (16 * large, 8, size(7, 2), 0),
        (16 * large, large - 8, size(7, 2), 0),
        (16 * large, 2 * large, size(7, 2), 0),
    ];
    assert_eq!(all.copied().collect::<Vec<_>>(), expected);
}

#[test]
fn edges_of_a_second_thread_are_there() {
    assert_eq!(edges(8), [(1, 0, 2, 0), (1, 8, 3, 0), (2, 0, 3, 0), (3, 16, 2, 0)]);
}

#[test]
fn stale_words_of_recycled_memory_are_no_edges() {
    assert_eq!(edges(9), [(1, 56, 2, 0), (3, 8, 2, 0)]);
}

#[test]
fn a_pointer_that_an_allocation_stores_is_an_edge() {
    assert_eq!(edges(10), [(1, 0, 8, 0), (1, 8, 2, 0)]);
}

#[test]
fn reallocs_free_the_old_object_after_the_new_one_is_there() {
    let mut last = None;
    for event in &CASES.events {
        match *event {
            Event::Allocate { object, kind, .. } => last = Some((object, kind)),
            Event::Free { cause: FreeCause::Resized, object, .. } => {
                let (new, kind) = last.expect("an allocation");
                assert!(object < new && kind == heaptoll_trace::graph::AllocationKind::Resized);
            }
            _ => {}
        }
    }
}

const ROOTS: &str = r#"
#include <stdlib.h>
#include <sys/mman.h>
static void **volatile in_data[4] = { (void **)1 };
static void **volatile in_bss[4];
int main(void)
{
   void **volatile *mapping = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
   void **volatile on_stack;
   in_data[1] = malloc(1008);
   in_data[2] = (void **)((char *)(in_data[3] = malloc(1056)) + 16);
   in_bss[0] = (void **)((char *)malloc(1064) + 32), in_bss[1] = (void **)((char *)in_bss[0] - 8);
   in_bss[2] = malloc(1016);
   mapping[3000] = malloc(1024);
   on_stack = (void **)((char *)malloc(1032) + 8);
   *(void *volatile *)in_data[1] = malloc(1040);
   free(malloc(1048));
   for (int i = 0; i < 20; i++)
      *(volatile char *)malloc(2000);
   return on_stack == 0;
}
"#;

#[test]
fn a_root_point_has_what_is_reachable_from_outside_of_objects_and_where() {
    let graph = record(ROOTS, 8000);
    let is_begin = |at: &usize| matches!(graph.events[*at], Event::RootsBegin { .. });
    let begins: Vec<usize> = (0..graph.events.len()).filter(is_begin).collect();
    // The last one is at the program's end, where main has returned.
    let [.., begin, end] = begins[..] else { panic!("two points: {begins:?}") };
    let roots: BTreeSet<(u64, u64, RootKind)> = graph.events[begin..end]
        .iter()
        .filter_map(|event| match *event {
            Event::Root { object, offset, kind } => Some((graph.sizes[&object], offset, kind)),
            _ => None,
        })
        .filter(|root| root.0 < 2000)
        .collect();
    let expected = [
        (1008, 0, RootKind::Static),
        (1016, 0, RootKind::Static),
        (1024, 0, RootKind::Mapping),
        (1032, 8, RootKind::Stack),
        // Of several words of a kind, the lowest offset.
        (1056, 0, RootKind::Static),
        (1064, 24, RootKind::Static),
    ];
    for root in expected {
        assert!(roots.contains(&root), "{root:?} is missing in {roots:?}");
    }
    // 1040 is reachable only through 1008, and nothing leads to 1048.
    assert!(roots.iter().all(|root| root.0 != 1040 && root.0 != 1048), "{roots:?}");
}
