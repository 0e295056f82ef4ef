//! The candidates: managers, and settings of them that change time or memory much for some programs.

use heaptoll_experiment::extension::require_for;
use heaptoll_experiment::manager::{self, Manager};

use heaptoll_command::failure::Failure;

/// Settings that are tried, by manager: what gives memory back sooner or never, fewer arenas, huge pages; of a collector
/// how much is allocated between collections, and how long one may stop the program.
const SETTINGS: [(&str, &[&str]); 8] = [
    (
        "glibc",
        &[
            "arenas=1",
            "arenas=2",
            "mmap=64K,trim=64K",
            "mmap=1G,trim=4G",
            "mmap=1G,trim=4G,top_pad=64M",
            "hugetlb=1",
            "hugetlb=1,mmap=1G,trim=4G",
        ],
    ),
    (
        "jemalloc",
        &[
            "dirty_decay_ms=0,muzzy_decay_ms=0",
            "dirty_decay_ms=1000",
            "narenas=1",
            "dirty_decay_ms=0,muzzy_decay_ms=0,narenas=1",
            "thp=always",
        ],
    ),
    ("mimalloc3", &["purge_delay=0", "purge_delay=1000", "large_pages=1"]),
    ("mimalloc2", &["purge_delay=0", "large_pages=1"]),
    ("debian-gperftools", &["release_rate=10", "aggressive_decommit=true", "thread_caches=1M"]),
    ("tithe", &["headroom=30", "generations=on", "pause=5"]),
    ("tithe-collect", &["generations=off", "headroom=25", "headroom=200", "pause=5"]),
    ("tithe-explicit", &[]),
];

/// A collector that serves any program as malloc does: free reclaims at once, and collections take what leaks.
const COLLECTOR: &str = "tithe";

/// Names of the candidates without the baseline: those of `words`, or the modern managers and Tithe; each alone, and
/// with settings where no manager was named or `settings` requests it.
///
/// # Errors
/// A word names no manager.
pub fn names(
    known: &[Manager],
    words: &[String],
    settings: bool,
    baseline: &str,
) -> Result<Vec<String>, Failure> {
    let chosen = match words {
        [] => manager::default_set(known).into_iter().chain(manager::find(known, COLLECTOR).ok()).collect(),
        words => manager::choose(known, words.iter().map(String::as_str))?,
    };
    chosen.iter().try_for_each(require_for)?;
    let with_settings = settings || words.is_empty();
    // The default itself may have better settings.
    let default = manager::find(known, baseline)?;
    let is_listed = chosen.iter().any(|manager| manager.name == default.name);
    let extra = (!is_listed && with_settings).then_some(&default);
    let mut names: Vec<String> = Vec::new();
    for manager in chosen.iter().chain(extra) {
        names.push(manager.name.clone());
        if with_settings && manager.set.is_empty() && manager.layers.is_empty() {
            let tried = of(manager).iter().map(|setting| format!("{},{setting}", manager.name));
            // A description may be of an older object, without an option.
            names.extend(tried.filter(|name| manager::find(known, name).is_ok()));
        }
    }
    names.retain(|name| *name != default.name);
    if names.is_empty() {
        return Err(Failure::Usage(format!("nothing to choose from but {baseline}: name managers by -m")));
    }
    Ok(names)
}

/// Settings that are tried of a manager.
fn of(manager: &Manager) -> &'static [&'static str] {
    let is_of = |name: &str| manager.base == name || manager.stands_for == Some(name);
    SETTINGS.iter().find(|(name, _)| is_of(name)).map_or(&[], |(_, settings)| settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptoll_experiment::places::Places;

    #[test]
    fn the_default_is_tried_with_its_settings_and_not_as_it_is() {
        let places = Places::find().expect("heaptoll's own files");
        let known = manager::known(&places).expect("managers");
        let found = names(&known, &[], false, "glibc").expect("candidates");
        assert!(!found.contains(&"glibc".to_owned()));
        assert!(found.contains(&"glibc,arenas=1".to_owned()), "{found:?}");
        let named = names(&known, &["glibc,arenas=2".to_owned()], false, "glibc").expect("candidates");
        assert_eq!(named, ["glibc,arenas=2"]);
        assert!(names(&known, &["glibc".to_owned()], false, "glibc").is_err());
        assert!(names(&known, &["nowhere".to_owned()], false, "glibc").is_err());
        // Every setting in the list is an option that exists.
        for (name, settings) in SETTINGS {
            let Ok(manager) = manager::find(&known, name) else { continue };
            for setting in settings {
                let word = format!("{},{setting}", manager.name);
                assert!(manager::find(&known, &word).is_ok(), "{word}");
            }
        }
    }
}
