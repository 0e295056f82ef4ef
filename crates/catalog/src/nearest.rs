//! The known name that a misspelt one was meant to be.

/// How near a misspelt name must be to a known one to be suggested (Jaro-Winkler similarity, 0 to 1).
const NEAR: f64 = 0.75;

/// The known name nearest to `wanted`, when one is near.
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = wanted.to_lowercase();
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&wanted, name), name))
        .filter(|(score, _)| *score >= NEAR)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// `; did you mean NAME?`, or nothing: for the end of a sentence that names what is not known.
pub fn did_you_mean<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(wanted, known).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_suggested_and_what_is_not_is_not() {
        let known = ["glibc", "mimalloc3", "debian-jemalloc", "rpmalloc"];
        assert_eq!(nearest("mimaloc3", known), Some("mimalloc3"));
        assert_eq!(nearest("RPmalloc", known), Some("rpmalloc"));
        assert_eq!(nearest("zzz", known), None);
        assert_eq!(did_you_mean("glib", known), "; did you mean `glibc`?");
        assert_eq!(did_you_mean("zzz", known), "");
    }
}
