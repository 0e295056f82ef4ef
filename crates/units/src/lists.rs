//! Lists without repeats, in the order in which values first came. They hold few names, so a search through all is fast.

/// Each value once, in the order in which it first came.
pub fn each_once<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for one in all {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

/// Values with the same key together, in the order of their first places.
pub fn groups<K: PartialEq, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut found: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in pairs {
        match found.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => found.push((key, vec![value])),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_first_places() {
        assert_eq!(each_once(["b", "a", "b"]), ["b", "a"]);
        let pairs = [("b", 1), ("a", 2), ("b", 3)];
        assert_eq!(groups(pairs), [("b", vec![1, 3]), ("a", vec![2])]);
    }
}
