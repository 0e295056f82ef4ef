//! How a virtual machine reports that its heap is too small.

/// To standard error, or, where it does not even start, to standard output.
const OUT_OF_MEMORY: [&str; 4] = [
    "java.lang.OutOfMemoryError",
    "Error occurred during initialization of VM\nToo small",
    "Error occurred during initialization of VM\nCould not reserve enough space",
    "GC triggered before VM initialization completed",
];

/// Whether a text reports that the heap is too small.
pub fn is_out_of_memory(text: &str) -> bool {
    OUT_OF_MEMORY.into_iter().any(|line| text.contains(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lack_of_memory_is_known_by_the_words_of_the_machine() {
        assert!(is_out_of_memory(
            "Exception in thread \"main\" java.lang.OutOfMemoryError: Java heap space\n\tat T.main"
        ));
        assert!(is_out_of_memory("Error occurred during initialization of VM\nToo small maximum heap\n"));
        assert!(!is_out_of_memory(
            "Error occurred during initialization of VM\nMultiple garbage collectors selected\n"
        ));
    }
}
