//! Damaged descriptions of programs: taken or refused with a reason, never a panic. A failure names the seed.

use heaptoll_catalog::Catalog;
use heaptoll_testing::damage::Dice;

fn descriptions() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs");
    let files = std::fs::read_dir(folder).expect("programs").flatten().map(|entry| entry.path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    files.sort();
    files.iter().map(|path| std::fs::read_to_string(path).expect("a description")).collect()
}

fn fuzz(seeds: std::ops::Range<u64>) {
    let whole = descriptions();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("damaged.toml");
    let (mut taken, mut refused) = (0, 0);
    for seed in seeds {
        let mut dice = Dice::new(seed);
        let which = dice.below(whole.len());
        std::fs::write(&file, heaptoll_testing::damage::text(&mut dice, &whole[which])).expect("written");
        let loaded = std::panic::catch_unwind(|| Catalog::load(folder.path()));
        match loaded.unwrap_or_else(|_| panic!("seed {seed}: panicked, see above")) {
            Ok(_) => taken += 1,
            Err(error) => {
                assert!(error.to_string().contains("damaged.toml"), "seed {seed}: {error}");
                refused += 1;
            }
        }
    }
    assert!(taken > 0 && refused > 0, "{taken} taken, {refused} refused");
}

#[test]
fn damaged_programs_are_taken_or_refused() {
    fuzz(0..100);
}

#[test]
#[ignore = "slow: ten thousand damaged descriptions of programs"]
fn many_damaged_programs_are_taken_or_refused() {
    fuzz(1_000..11_000);
}
