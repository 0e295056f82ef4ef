//! The traces of one recording: each process image has its own.

use std::path::{Path, PathBuf};

use crate::graph;

/// The traces of a recording whose first one is this, the others in order of their names.
pub fn all(first: &Path) -> Vec<PathBuf> {
    let mut all = graph::traces(first);
    all.extend(heaptoll_record::others(first));
    all[1..].sort();
    all.dedup();
    all
}

/// Of a recording of several process images: how many there are, and the longest trace, where that is not this one.
pub fn longest(trace: &Path) -> Option<(usize, PathBuf)> {
    let bytes = |path: &Path| path.metadata().map_or(0, |facts| facts.len());
    let all = all(trace);
    let longest = all[1..].iter().max_by_key(|path| bytes(path))?;
    (bytes(longest) > bytes(trace)).then(|| (all.len(), longest.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a daemon the parent alone was shown, which had allocated nothing.
    #[test]
    fn the_longest_trace_of_a_recording_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = folder.path().join("t");
        let children = folder.path().join("t.children");
        std::fs::create_dir(&children).expect("a folder");
        let write = |path: &Path, bytes| std::fs::write(path, vec![7; bytes]).expect("written");
        write(&first, 30);
        assert_eq!(longest(&first), None);
        write(&children.join("9.heaptoll"), 10);
        write(&children.join("notes"), 99);
        assert_eq!(longest(&first), None, "the first is the longest");
        write(&children.join("8.2.heaptoll"), 40);
        assert_eq!(longest(&first), Some((3, children.join("8.2.heaptoll"))));
    }
}
