use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// A slow model of [`Objects`].
#[derive(Default)]
struct Model {
    /// Start to end and value.
    objects: BTreeMap<u64, (u64, u32)>,
}

impl Model {
    fn at(&self, address: u64) -> Option<(u64, u32)> {
        let (start, (end, value)) = self.objects.range(..=address).next_back()?;
        (address < *end).then_some((*start, *value))
    }

    fn over(&self, start: u64, end: u64) -> bool {
        self.objects.range(..end).next_back().is_some_and(|(_, (other, _))| *other > start)
    }
}

#[derive(Debug, Clone)]
enum Step {
    Insert(u64, u64),
    Remove(prop::sample::Index),
    Find(u64),
    Near(prop::sample::Index, i64),
    Overlapping(u64, u64),
}

/// Addresses close to borders of granules, pages and regions.
fn address() -> impl Strategy<Value = u64> {
    let base = prop_oneof![
        Just(0x1000_u64),
        Just(0x0400_0000),
        Just(0x7fff_fc00_0000),
        Just(0x7000_0000_0000),
        Just((1 << 48) - 5000)
    ];
    (base, prop_oneof![0_u64..100, 0_u64..6000, 0_u64..200_000]).prop_map(|(base, offset)| base + offset)
}

fn size() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0_u64..40, 3 => 0_u64..600, 2 => 4000_u64..20_000, 1 => (64_u64 << 20)..(200 << 20)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (address(), size()).prop_map(|(start, size)| Step::Insert(start, size)),
        3 => any::<prop::sample::Index>().prop_map(Step::Remove),
        1 => address().prop_map(Step::Find),
        2 => (any::<prop::sample::Index>(), -40_i64..40).prop_map(|(which, off)| Step::Near(which, off)),
        1 => (address(), size()).prop_map(|(start, size)| Step::Overlapping(start, start + size)),
    ]
}

fn run(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let (mut objects, mut model) = (Objects::new(), Model::default());
    let mut next = 0;
    let find = |objects: &mut Objects<u32>, model: &Model, address: u64| -> Result<(), TestCaseError> {
        let found = objects.find(address).map(|index| (objects.start(index), *objects.get(index)));
        prop_assert_eq!(found, model.at(address), "at {:#x}", address);
        Ok(())
    };
    for step in steps {
        match step {
            Step::Insert(start, size) => {
                let end = start + size.max(1);
                let result = objects.insert(start, size, next);
                if end > 1 << 48 {
                    prop_assert_eq!(result, Err(InsertError::OutOfRange));
                } else if model.over(start, end) {
                    let Err(InsertError::Overlaps(other)) = result else {
                        return Err(TestCaseError::fail(format!("{result:?} over another")));
                    };
                    let (other_end, _) = model.objects[&objects.start(other)];
                    prop_assert!(objects.start(other) < end && other_end > start);
                } else {
                    prop_assert!(result.is_ok());
                    model.objects.insert(start, (end, next));
                    find(&mut objects, &model, start)?;
                }
                next += 1;
            }
            Step::Remove(which) if !model.objects.is_empty() => {
                let start = *which.get(&model.objects.keys().copied().collect::<Vec<_>>());
                let value = model.objects.remove(&start).map(|(_, value)| value);
                if !model.objects.contains_key(&(start + 1)) {
                    prop_assert_eq!(objects.remove(start + 1), None);
                }
                prop_assert_eq!(objects.remove(start), value);
                find(&mut objects, &model, start)?;
            }
            Step::Near(which, off) if !model.objects.is_empty() => {
                let (start, (end, _)) = which.get(&model.objects.iter().collect::<Vec<_>>()).to_owned();
                find(&mut objects, &model, start.saturating_add_signed(off))?;
                find(&mut objects, &model, end.saturating_add_signed(off))?;
            }
            Step::Find(address) => find(&mut objects, &model, address)?,
            Step::Overlapping(start, end) => {
                let found = objects.overlapping(start, end).map(|index| objects.start(index));
                prop_assert_eq!(found.is_some(), start < end && model.over(start, end));
            }
            Step::Remove(_) | Step::Near(..) => {}
        }
        prop_assert_eq!(objects.len(), model.objects.len());
        // The check walks all addresses.
        if next % 16 == 0 {
            prop_assert_eq!(objects.check(), Ok(()));
        }
    }
    prop_assert_eq!(objects.check(), Ok(()));
    let all: BTreeMap<u64, u32> = objects.iter().map(|(start, value)| (start, *value)).collect();
    prop_assert_eq!(all, model.objects.iter().map(|(start, (_, value))| (*start, *value)).collect());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn objects_are_found_as_in_an_ordered_map(steps in prop::collection::vec(step(), 0..60)) {
        run(steps)?;
    }
}

#[test]
fn objects_share_granules() {
    let mut objects = Objects::new();
    for (start, size) in [(3, 2), (5, 1), (10, 30), (6, 3), (40, 0), (41, 7)] {
        objects.insert(0x1000 + start, size, start).expect("they do not lie over each other");
        objects.check().expect("sound");
    }
    let mut at = |address: u64| objects.find(0x1000 + address).map(|index| *objects.get(index));
    let found: Vec<_> = [2, 3, 4, 5, 6, 8, 9, 10, 39, 40, 41, 47, 48].map(&mut at).into();
    let expected = [0, 3, 3, 5, 6, 6, 0, 10, 10, 40, 41, 41, 0];
    assert_eq!(found, expected.map(|value| (value > 0).then_some(value)));
}

#[test]
fn what_has_gone_takes_no_memory() {
    let mut objects: Objects<()> = Objects::new();
    for round in 0..100_u64 {
        let starts: Vec<u64> = (0..100).map(|n| (round << 27) + n * 5000 + 4096).collect();
        starts.iter().for_each(|start| assert!(objects.insert(*start, 3000, ()).is_ok()));
        starts.iter().for_each(|start| assert!(objects.remove(*start).is_some()));
    }
    objects.check().expect("sound");
    assert!(objects.is_empty());
    assert!(objects.overhead_bytes() < 100 << 10, "{} bytes", objects.overhead_bytes());
}
