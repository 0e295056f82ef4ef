//! Paths of a recipe: they lead down from a folder, and nowhere else.

/// A path that leads nowhere but down.
pub(crate) fn inside(path: &str) -> Result<(), String> {
    let down = |part: &str| !part.is_empty() && part != "." && part != "..";
    path.split('/').all(down).then_some(()).ok_or(format!("`{path}` is not a path below the folder"))
}

/// The last part of a folder's path: what it is called below the program's.
pub(crate) fn last(folder: &str) -> &str {
    folder.rsplit('/').next().unwrap_or(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_that_lead_down_are_taken() {
        assert!(inside("suite/cfrac/INPUT/README").is_ok());
        for path in ["", "/etc/passwd", "a/../b", "..", "./a", "a//b", "a/"] {
            assert!(inside(path).is_err(), "{path}");
        }
        assert_eq!((last("suite/cfrac"), last("cfrac")), ("cfrac", "cfrac"));
    }
}
