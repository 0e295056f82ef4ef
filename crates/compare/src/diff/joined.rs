//! What two files have in common, by name.

/// What both have of one name; where each has one alone, these.
pub fn joined<'a, T>(
    base: &'a [T],
    new: &'a [T],
    name: impl Fn(&T) -> &String,
    what: &str,
    warnings: &mut Vec<String>,
) -> Vec<(&'a T, &'a T)> {
    if let ([base], [new]) = (base, new) {
        if name(base) != name(new) {
            warnings.push(format!("These are two {what}s: {} and {}.", name(base), name(new)));
        }
        return vec![(base, new)];
    }
    let alone = |all: &[T], others: &[T]| {
        let others: Vec<&String> = others.iter().map(&name).collect();
        all.iter().map(&name).filter(|one| !others.contains(one)).cloned().collect::<Vec<_>>()
    };
    let left_out = [alone(base, new), alone(new, base)].concat();
    if !left_out.is_empty() {
        warnings.push(format!("Only one file has the {what} {}.", heaptoll_units::and_list(&left_out)));
    }
    let other = |one: &T| new.iter().find(|other| name(other) == name(one));
    base.iter().filter_map(|one| Some((one, other(one)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_one_name_is_joined_and_what_is_alone_too() {
        let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
        let found = |base: &[&str], new: &[&str]| {
            let (base, new, mut warnings) = (all(base), all(new), Vec::new());
            let pairs = joined(&base, &new, |name| name, "program", &mut warnings);
            (pairs.into_iter().map(|(a, b)| format!("{a}={b}")).collect::<Vec<_>>(), warnings)
        };
        assert_eq!(found(&["a"], &["b"]), (all(&["a=b"]), all(&["These are two programs: a and b."])));
        assert_eq!(found(&["a", "b"], &["b", "a"]), (all(&["a=a", "b=b"]), vec![]));
        let (pairs, warnings) = found(&["a", "b"], &["b"]);
        assert_eq!((pairs, warnings), (all(&["b=b"]), all(&["Only one file has the program a."])));
        assert!(found(&["a", "b"], &["c", "d"]).0.is_empty());
    }
}
