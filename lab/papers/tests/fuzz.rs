//! Damaged studies: read or refused with a reason, never a panic. A failure names the seed.

use heaptoll_papers::definition::Study;
use heaptoll_testing::damage::Dice;

fn studies() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies");
    let files = std::fs::read_dir(folder).expect("studies").flatten().map(|entry| entry.path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    files.sort();
    files.iter().map(|path| std::fs::read_to_string(path).expect("a study")).collect()
}

fn fuzz(seeds: std::ops::Range<u64>) {
    let whole = studies();
    let (mut read, mut refused) = (0, 0);
    for seed in seeds {
        let mut dice = Dice::new(seed);
        let which = dice.below(whole.len());
        let text = heaptoll_testing::damage::text(&mut dice, &whole[which]);
        let parsed = std::panic::catch_unwind(|| Study::parse(&text, "damaged.toml"));
        match parsed.unwrap_or_else(|_| panic!("seed {seed}: panicked, see above")) {
            Ok(_) => read += 1,
            Err(fault) => {
                assert!(!fault.to_string().is_empty(), "seed {seed}");
                refused += 1;
            }
        }
    }
    assert!(read > 0 && refused > 0, "{read} read, {refused} refused");
}

#[test]
fn damaged_studies_are_read_or_refused() {
    fuzz(0..100);
}

#[test]
#[ignore = "slow: ten thousand damaged studies"]
fn many_damaged_studies_are_read_or_refused() {
    fuzz(1_000..11_000);
}
