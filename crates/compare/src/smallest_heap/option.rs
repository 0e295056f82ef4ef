//! The option that fixes the heap of a collector.

use heaptoll_experiment::manager::Manager;

/// The option that fixes a heap.
const HEAP: &str = "heap";

/// Whether a stack has a heap that can be fixed.
pub fn has_heap(manager: &Manager) -> bool {
    manager.options.contains_key(HEAP) || manager.layers.iter().any(|layer| layer.kind.collects)
}

/// Whether a stack collects in a heap that can be fixed and is not: one whose smallest heap can be searched.
pub fn is_searched(manager: &Manager) -> bool {
    manager.collects() && has_heap(manager) && !sets_heap(manager)
}

/// Whether the user fixed the heap.
pub fn sets_heap(manager: &Manager) -> bool {
    manager.set.iter().any(|option| option == HEAP) || set_in_layer(manager, HEAP)
}

fn set_in_layer(manager: &Manager, option: &str) -> bool {
    manager.layers.iter().any(|layer| layer.setting(option).is_some())
}

#[cfg(test)]
mod tests {
    use heaptoll_experiment::manager::{self, glibc};

    use super::*;

    #[test]
    fn a_collector_is_searched_where_its_heap_can_be_fixed_and_is_not() {
        let known = [glibc()];
        let searched = |word: &str| manager::find(&known, word).is_ok_and(|one| is_searched(&one));
        assert!(searched("sweep/glibc") && searched("count/sweep,every=1M/glibc"));
        assert!(!searched("glibc") && !searched("sweep,heap=1M/glibc"));
    }
}
