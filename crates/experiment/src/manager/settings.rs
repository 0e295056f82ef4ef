//! Options of managers that are not heaptoll's: the settings that they read from the environment (`settings.toml`).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::definition::Manager;
use crate::stack::ManagerOption;

/// Options by name.
type Options = BTreeMap<String, ManagerOption>;

static SETTINGS: LazyLock<BTreeMap<String, Options>> =
    LazyLock::new(|| toml::from_str(include_str!("settings.toml")).unwrap_or_default());

/// A manager with the settings that are known of it, unless its description has options. One that stands in for another
/// has that one's, where it has none of its own.
pub(super) fn with_settings(mut manager: Manager) -> Manager {
    if manager.options.is_empty() {
        let names = std::iter::once(manager.base.as_str()).chain(manager.stands_for);
        let found = names.into_iter().find_map(|name| SETTINGS.get(name));
        // Debian's mimalloc 2.0 has other names for them.
        if let Some(options) = found.filter(|_| manager.base != "debian-mimalloc2") {
            manager.options = options.clone();
        }
    }
    manager
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manager::glibc;

    #[test]
    fn the_table_can_be_read_and_names_no_manager_of_ours() {
        let table: BTreeMap<String, Options> =
            toml::from_str(include_str!("settings.toml")).expect("settings.toml");
        assert_eq!(table.len(), SETTINGS.len());
        assert!(table.keys().all(|name| !name.starts_with("tithe") && !name.starts_with("bw")));
        assert!(table.values().flat_map(BTreeMap::values).all(|option| !option.variable.starts_with("LD_")));
    }

    #[test]
    fn those_that_stand_in_for_another_have_its_settings() {
        let named = |base: &str, stands_for| Manager { base: base.into(), stands_for, ..glibc() };
        let options = |manager| with_settings(manager).options.into_keys().collect::<Vec<_>>();
        assert_eq!(options(named("debian-jemalloc", Some("jemalloc"))), options(named("jemalloc", None)));
        assert!(options(named("debian-jemalloc", Some("jemalloc"))).contains(&"dirty_decay_ms".to_owned()));
        assert!(options(named("snmalloc", None)).is_empty());
        assert!(options(named("debian-mimalloc2", Some("mimalloc2"))).is_empty());
    }

    #[test]
    fn settings_of_one_variable_are_joined() {
        let jemalloc = Manager { name: "jemalloc".into(), base: "jemalloc".into(), ..glibc() };
        let known = [with_settings(glibc()), with_settings(jemalloc)];
        let set = |name: &str| crate::manager::find(&known, name).expect("a manager").environment;
        let pair = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        assert_eq!(
            set("jemalloc,dirty_decay_ms=0,narenas=2"),
            pair("MALLOC_CONF", "dirty_decay_ms:0,narenas:2")
        );
        assert_eq!(set("glibc,trim=64K"), pair("MALLOC_TRIM_THRESHOLD_", "65536"));
        let never = pair("MALLOC_CONF", "dirty_decay_ms:-1,muzzy_decay_ms:-1");
        assert_eq!(set("jemalloc,dirty_decay_ms=-1,muzzy_decay_ms=-1"), never, "a negative setting");
        assert!(crate::manager::find(&known, "jemalloc,dirty_decay_ms=-2").is_err());
        assert!(crate::manager::find(&known, "jemalloc,dirty=0").is_err());
        assert!(crate::manager::find(&known, "glibc,arenas=0").is_err());
    }

    /// Names in the table are names in the objects: a setting that no object reads would measure nothing.
    #[test]
    fn the_objects_of_this_machine_have_the_names() {
        for manager in super::super::debian::installed().map(with_settings) {
            let Some(object) = &manager.object else { continue };
            let bytes = std::fs::read(object).expect("an installed object");
            let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
            for option in manager.options.values() {
                let name =
                    option.key.as_deref().map_or(option.variable.as_str(), |key| key.trim_end_matches(':'));
                assert!(has(name), "{}: {name}", manager.name);
            }
        }
    }
}
