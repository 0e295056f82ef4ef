//! What is packed is what the profile has, read back as the page's script reads it.

use heaptoll_profiles::{Builder, Frame, Measure, Profile};
use proptest::prelude::*;

use super::functions::Functions;
use super::tree::{NONE, Node};
use super::*;
use crate::document::FlameBase;

const MEASURES: [Measure; 3] = [Measure::AllocatedObjects, Measure::OwnPeakBytes, Measure::AllocatedBytes];

fn named(function: &str, line: u32) -> Frame {
    Frame { function: function.into(), object: "/bin/a".into(), line, ..Frame::default() }
}

/// A profile of stacks of functions by number, innermost first.
fn profile(stacks: &[(Vec<u8>, [u64; 3])]) -> Profile {
    let mut builder = Builder::new(MEASURES.to_vec());
    for (stack, values) in stacks {
        // Frames of one function that differ in their line.
        let frame = |(at, function): (usize, &u8)| named(&format!("f{function}"), at as u32);
        let frames: Vec<u32> =
            stack.iter().enumerate().map(frame).map(|frame| builder.frame(frame)).collect();
        builder.stack(&frames, values);
    }
    builder.finish()
}

fn flame(profile: Profile, base: Option<Profile>) -> Flame {
    let names = || ["before <i>".to_owned(), "after".to_owned()];
    Flame {
        title: "Who <b>".into(),
        caption: "Bytes.".into(),
        profile,
        first: Measure::AllocatedBytes,
        base: base.map(|profile| Box::new(FlameBase { profile, names: names() })),
    }
}

fn tree(profile: Profile, most: usize) -> Tree {
    Tree::new(&flame(profile, None), most)
}

/// What the page's script reads.
struct Decoded {
    head: serde_json::Value,
    functions: Vec<[String; 3]>,
    nodes: Vec<Node>,
    lines: Vec<(u32, Vec<u32>)>,
    values: Vec<Vec<u64>>,
}

fn number(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (first, rest) = bytes.split_first().expect("a byte");
        *bytes = rest;
        value |= u64::from(first & 127) << shift;
        if *first < 128 {
            break;
        }
    }
    value
}

fn decode(mut bytes: &[u8]) -> Decoded {
    let length = number(&mut bytes) as usize;
    let (head, mut rest) = bytes.split_at(length);
    let head: serde_json::Value = serde_json::from_slice(head).expect("JSON");
    let mut column = |count: usize| -> Vec<u64> { (0..count).map(|_| number(&mut rest)).collect() };
    let count = column(1)[0] as usize;
    let [name, object, file] = [column(count), column(count), column(count)];
    let text = |number: u64| head["texts"][number as usize].as_str().expect("a text").to_owned();
    let functions = (0..count).map(|at| [text(name[at]), text(object[at]), text(file[at])]).collect();
    let count = column(1)[0] as usize;
    let [ups, numbers, merged] = [column(count), column(count), column(count)];
    let mut nodes: Vec<Node> = Vec::new();
    for at in 0..count {
        let mut parent = (at as u32).checked_sub(1).unwrap_or(NONE);
        (0..ups[at]).for_each(|_| parent = nodes[parent as usize].parent);
        nodes.push(Node { parent, function: numbers[at] as u32, merged: merged[at] });
    }
    let counts = column(count);
    let lines = counts.iter().map(|&all| {
        let kept = column((all as usize).min(6));
        (all as u32, kept.into_iter().map(|line| line as u32).collect())
    });
    let lines = lines.collect();
    let measures = head["measures"].as_array().expect("a list").len();
    let sides = if head["sides"].is_null() { 1 } else { 2 };
    let values = (0..measures * sides).map(|_| column(count)).collect();
    assert!(rest.is_empty(), "{} bytes are left", rest.len());
    Decoded { head, functions, nodes, lines, values }
}

fn stacks() -> impl Strategy<Value = Vec<(Vec<u8>, [u64; 3])>> {
    let value = prop_oneof![Just(0), 0..1000_u64, Just(1_u64 << 60)];
    let values = [value.clone(), value.clone(), value];
    proptest::collection::vec((proptest::collection::vec(0..5_u8, 0..9), values), 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_packed_is_read_back(stacks in stacks(), most in 1..80_usize) {
        let tree = tree(profile(&stacks), most);
        let decoded = decode(&packed::pack(&tree, 0, None).expect("packed"));
        prop_assert_eq!(&decoded.nodes, &tree.nodes);
        for (measure, column) in decoded.values.iter().enumerate() {
            let own: Vec<u64> = (0..tree.nodes.len()).map(|node| tree.value(node, measure, 0)).collect();
            prop_assert_eq!(column, &own);
        }
        for (node, (count, lines)) in decoded.lines.iter().enumerate() {
            prop_assert_eq!((*count, lines.as_slice()), (tree.lines.count(node), tree.lines.of(node)));
        }
        for (read, function) in decoded.functions.iter().zip(&tree.functions) {
            prop_assert_eq!(read, &[function.name.clone(), function.object.clone(), function.file.clone()]);
        }
    }

    #[test]
    fn sums_stay_exact_whatever_is_merged(stacks in stacks(), most in 1..80_usize) {
        let profile = profile(&stacks);
        let (whole, cut) = (tree(profile.clone(), usize::MAX), tree(profile.clone(), most));
        prop_assert_eq!(&whole.measures, &[Measure::AllocatedObjects, Measure::AllocatedBytes]);
        prop_assert_eq!(whole.left_out.calls, 0);
        prop_assert!(cut.nodes.iter().filter(|node| node.merged == 0).count() <= most);
        prop_assert_eq!(cut.nodes.iter().filter(|node| node.merged == 0).count() + cut.left_out.calls as usize, whole.nodes.len());
        for (at, measure) in whole.measures.iter().enumerate() {
            let sums = by_path(&whole, at, 0);
            for (path, sum) in by_path(&cut, at, 0) {
                let is_merged = path.contains(&Functions::MERGED);
                prop_assert!(is_merged || sums[&path] == sum, "{:?}", path);
            }
            let total = |tree: &Tree| (0..tree.nodes.len()).fold(0_u64, |sum, node| sum.saturating_add(tree.value(node, at, 0)));
            prop_assert_eq!(total(&whole), profile.total(*measure));
            prop_assert_eq!(total(&cut), profile.total(*measure));
        }
    }

    #[test]
    fn both_sides_of_a_comparison_have_the_sums_of_their_own_trees(own in stacks(), base in stacks(), most in 1..80_usize) {
        let (own, base) = (profile(&own), profile(&base));
        let both = Tree::new(&flame(own.clone(), Some(base.clone())), most);
        let decoded = decode(&packed::pack(&both, 0, Some(&["a".into(), "b".into()])).expect("packed"));
        prop_assert_eq!(&decoded.nodes, &both.nodes);
        for (side, profile) in [own, base].into_iter().enumerate() {
            let alone = tree(profile.clone(), usize::MAX);
            for (at, measure) in both.measures.iter().enumerate() {
                let column: Vec<u64> = (0..both.nodes.len()).map(|node| both.value(node, at, side)).collect();
                prop_assert_eq!(&decoded.values[at * 2 + side], &column);
                prop_assert_eq!(column.iter().fold(0_u64, |sum, own| sum.saturating_add(*own)), profile.total(*measure));
                let sums = by_path_of_names(&alone, at, 0);
                for (path, sum) in by_path_of_names(&both, at, side) {
                    let is_merged = path.iter().any(|name| name == "(smaller calls)");
                    prop_assert!(is_merged || sums.get(&path).copied().unwrap_or(0) == sum, "{:?}", path);
                }
            }
        }
    }
}

/// The same by names: two trees number their functions otherwise.
fn by_path_of_names(tree: &Tree, measure: usize, side: usize) -> std::collections::HashMap<Vec<String>, u64> {
    let name = |function: u32| tree.functions[function as usize].name.clone();
    let named = |path: Vec<u32>| path.into_iter().map(name).collect();
    by_path(tree, measure, side).into_iter().map(|(path, sum)| (named(path), sum)).collect()
}

/// Sums with all that is called, by the functions from the first one on; different nodes have different ones.
fn by_path(tree: &Tree, measure: usize, side: usize) -> std::collections::HashMap<Vec<u32>, u64> {
    let mut paths: Vec<Vec<u32>> = Vec::new();
    let mut sums: Vec<u64> = (0..tree.nodes.len()).map(|node| tree.value(node, measure, side)).collect();
    for node in &tree.nodes {
        let parent = paths.get(node.parent as usize).cloned().unwrap_or_default();
        paths.push(parent.into_iter().chain([node.function]).collect());
    }
    for at in (0..sums.len()).rev() {
        let parent = tree.nodes[at].parent;
        if parent != NONE {
            sums[parent as usize] = sums[parent as usize].saturating_add(sums[at]);
        }
    }
    let count = paths.len();
    let found: std::collections::HashMap<_, _> = paths.into_iter().zip(sums).collect();
    assert_eq!(found.len(), count);
    found
}

fn page(profile: Profile, base: Option<Profile>) -> String {
    let mut out = String::new();
    write(&flame(profile, base), "flame-0".into(), &mut out).expect("HTML");
    out
}

#[test]
fn names_are_no_markup_and_show_every_character() {
    let mut builder = Builder::new(MEASURES.to_vec());
    let names = ["a;b", "two\nlines", "</script><img src=x>", "\"'&\u{202e}"];
    let frames = names.map(|name| builder.frame(named(name, 0)));
    builder.stack(&frames, &[1, 2, 3]);
    let profile = builder.finish();
    let html = page(profile.clone(), None);
    assert!(html.contains("a;b &#60; two\\n") || html.contains("a;b &#60; two"), "{html}");
    assert!(
        !html.contains("<img") && !html.contains("<b>") && html.matches("</script>").count() == 1,
        "{html}"
    );
    let decoded = decode(&packed::pack(&tree(profile, CALLS), 1, None).expect("packed"));
    let read: Vec<&str> = decoded.functions[2..].iter().map(|[name, ..]| name.as_str()).collect();
    assert_eq!(read, ["a;b", "two\\nlines", "</script><img src=x>", "\"'&\\u{202e}"]);
    assert_eq!(decoded.head["first"], 1);
}

#[test]
fn a_profile_without_values_is_not_drawn() {
    let nothing = || profile(&[(vec![1, 2], [0, 0, 0])]);
    assert_eq!(page(Profile::default(), None), "");
    assert_eq!(page(nothing(), None), "");
    assert_eq!(page(nothing(), Some(nothing())), "");
}

#[test]
fn values_without_a_stack_are_drawn() {
    let tree = tree(profile(&[(vec![], [1, 9, 7])]), 10);
    assert_eq!(tree.nodes, [Node { parent: NONE, function: Functions::NO_STACK, merged: 0 }]);
    assert_eq!(tree.values, [1, 7]);
}

#[test]
fn deep_recursion_is_one_node_a_call() {
    let mut builder = Builder::new(MEASURES.to_vec());
    let frame = builder.frame(named("recurs", 0));
    builder.stack(&vec![frame; 10_000], &[1, 1, 1]);
    let tree = tree(builder.finish(), CALLS);
    assert_eq!(tree.nodes.len(), 10_000);
    assert_eq!(decode(&packed::pack(&tree, 0, None).expect("packed")).nodes, tree.nodes);
}

#[test]
fn what_was_merged_is_stated() {
    let stacks: Vec<_> = (0..5_u8).map(|leaf| (vec![leaf, 9], [1, 0, 1000 >> leaf])).collect();
    let tree = tree(profile(&stacks), 3);
    let merged: Vec<Node> = tree.nodes.iter().copied().filter(|node| node.merged > 0).collect();
    assert_eq!(merged, [Node { parent: 0, function: Functions::MERGED, merged: 3 }]);
    // 250, 125 and 62 of 1937 bytes are less than the share of objects, which is a fifth for each.
    assert_eq!(tree.left_out, LeftOut { all: 6, calls: 3, share: 250.0_f64.max(0.2 * 1937.0) / 1937.0 });
    assert!(left_out(&tree.left_out).starts_with("Of 6 calls, 3 have at most 20 % of every measure"));
    assert_eq!(share(0.000_012_34), "0.0012 %");
    assert_eq!(left_out(&LeftOut::default()), "");
}

#[test]
fn a_call_has_the_lines_of_its_file_and_a_merged_one_has_none() {
    let mut builder = Builder::new(MEASURES.to_vec());
    let mut frame = |function: &str, file: &str, line| {
        builder.frame(Frame { file: file.into(), ..named(function, line) })
    };
    let (first, again) = (frame("main", "a.c", 12), frame("main", "a.c", 7));
    let (elsewhere, none) = (frame("main", "b.h", 3), frame("main", "", 9));
    let (leaf, small) = (frame("leaf", "a.c", 40), frame("small", "a.c", 50));
    for frame in [again, elsewhere, none, first] {
        builder.stack(&[leaf, frame], &[100, 0, 100]);
    }
    builder.stack(&[small, again], &[1, 0, 1]);
    let tree = tree(builder.finish(), 2);
    let names: Vec<&str> =
        tree.nodes.iter().map(|node| tree.functions[node.function as usize].name.as_str()).collect();
    assert_eq!(names, ["main", "leaf", "(smaller calls)"]);
    let lines: Vec<&[u32]> = (0..3).map(|node| tree.lines.of(node)).collect();
    assert_eq!(lines, [&[7, 12][..], &[40][..], &[][..]]);
}

#[test]
fn a_comparison_lists_what_changed_most() {
    let (own, base) = (
        profile(&[(vec![1, 0], [1, 0, 500]), (vec![2, 0], [1, 0, 70])]),
        profile(&[(vec![1, 0], [1, 0, 100]), (vec![2, 0], [1, 0, 70]), (vec![3, 0], [1, 0, 50])]),
    );
    let table = paths::changes(&Tree::new(&flame(own, Some(base)), CALLS), 1, &["old".into(), "new".into()]);
    let rows: Vec<Vec<&str>> =
        table.rows.iter().map(|row| row.iter().map(|cell| cell.text.as_str()).collect()).collect();
    assert_eq!(rows, [["f1 < f0", "100", "500", "+400"], ["f3 < f0", "50", "0", "\u{2212}50"]]);
    assert_eq!(table.notes, ["All together: 220, then 570: +350."]);
    assert!(table.caption.starts_with("the 2 that changed most of 2 call stacks that changed"));
}

#[test]
fn names_of_a_comparison_are_no_markup() {
    let own = profile(&[(vec![1], [1, 1, 1])]);
    let html = page(own.clone(), Some(own));
    assert!(!html.contains("<i>") && html.contains("before &#60;i&#62;"), "{html}");
}
