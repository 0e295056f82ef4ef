//! Damaged descriptions of managers: taken or refused with a reason, never a panic, and never more than a manager may
//! set. A failure names the seed.

use heaptoll_testing::damage::Dice;

use super::*;

const WHOLE: &str = r#"name = "mine"
version = "1.0"
origin = "a test"
about = "a manager"
group = "modern"

[environment]
MINE_MODE = "fast"

[options.heap]
variable = "MINE_HEAP"
about = "most of it"
"#;

fn fuzz(seeds: std::ops::Range<u64>) {
    let folder = tempfile::tempdir().expect("a folder");
    let description = folder.path().join("mine.toml");
    std::fs::write(folder.path().join("mine.so"), "").expect("written");
    let (mut taken, mut refused) = (0, 0);
    for seed in seeds {
        std::fs::write(&description, heaptoll_testing::damage::text(&mut Dice::new(seed), WHOLE))
            .expect("written");
        let read = std::panic::catch_unwind(|| built(&description));
        match read.unwrap_or_else(|_| panic!("seed {seed}: panicked, see above")) {
            Ok(manager) => {
                let object = manager.object.expect("an object");
                assert_eq!(object.parent(), Some(folder.path()), "seed {seed}");
                taken += 1;
            }
            Err(error) => {
                assert!(error.to_string().contains("mine.toml"), "seed {seed}: {error}");
                refused += 1;
            }
        }
    }
    assert!(refused > taken / 100 && taken > 0, "{taken} taken, {refused} refused");
}

#[test]
fn damaged_managers_are_taken_or_refused() {
    fuzz(0..200);
}

#[test]
#[ignore = "slow: twenty thousand damaged descriptions of managers"]
fn many_damaged_managers_are_taken_or_refused() {
    fuzz(1_000..21_000);
}
