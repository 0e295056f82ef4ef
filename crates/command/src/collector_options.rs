//! Options that a command adds to the collector of a stack.

use heaptoll_experiment::manager::{self, Manager, ManagerError};
use heaptoll_experiment::stack::Values;

/// The option that fixes the heap.
const HEAP: &str = "heap";

/// The stack with options of its collector added: `sweep,heap=2M/mimalloc3`, `tithe-collect,heap=2M`.
///
/// # Errors
/// The collector does not take these options.
pub fn with(known: &[Manager], stack: &Manager, options: &str) -> Result<Manager, ManagerError> {
    manager::find(known, &name_with(stack, options))
}

/// The smallest heap that the collector of a stack takes, bytes; 0 where it states none.
pub fn least_heap(stack: &Manager) -> u64 {
    let values = match stack.layers.iter().find(|layer| layer.kind.collects) {
        Some(layer) => {
            layer.kind.options().into_iter().find(|(name, _)| *name == HEAP).map(|(_, values)| values)
        }
        None => stack.options.get(HEAP).map(|option| option.values.clone()),
    };
    match values {
        Some(Values::Size(least)) => least,
        _ => 0,
    }
}

fn name_with(stack: &Manager, options: &str) -> String {
    let layers: usize = stack.layers.iter().map(|layer| layer.word.len() + 1).sum();
    let manager = &stack.name[layers.min(stack.name.len())..];
    let swept = stack.layers.iter().any(|layer| layer.kind.collects);
    let mut word = String::new();
    for layer in &stack.layers {
        word.push_str(&layer.word);
        if layer.kind.collects {
            word.push(',');
            word.push_str(options);
        }
        word.push('/');
    }
    word.push_str(manager);
    if !swept {
        word.push(',');
        word.push_str(options);
    }
    word
}

#[cfg(test)]
mod tests {
    use heaptoll_experiment::manager::glibc;

    use super::*;

    #[test]
    fn options_go_to_the_collector_of_a_stack() {
        let known = [glibc()];
        let word = |text: &str| {
            let stack = manager::find(&known, text).expect("a stack");
            name_with(&stack, "heap=8192")
        };
        assert_eq!(word("sweep/glibc"), "sweep,heap=8192/glibc");
        assert_eq!(word("count/sweep,every=64K/glibc"), "count/sweep,every=64K,heap=8192/glibc");
        assert_eq!(name_with(&glibc(), "heap=8192"), "glibc,heap=8192");
    }

    #[test]
    fn the_least_heap_is_that_of_the_collector_which_has_the_option() {
        let swept = manager::find(&[glibc()], "sweep/glibc").expect("a stack");
        assert_eq!((least_heap(&swept), least_heap(&glibc())), (4096, 0));
    }
}
