//! Paths of a recipe: they lead down from a folder, and nowhere else.

/// A path that leads nowhere but down.
pub fn inside(path: &str) -> Result<(), String> {
    let down = |part: &str| !part.is_empty() && part != "." && part != "..";
    path.split('/').all(down).then_some(()).ok_or(format!("`{path}` is not a path below the folder"))
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
    }
}
