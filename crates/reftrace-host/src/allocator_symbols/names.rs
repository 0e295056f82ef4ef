//! The symbols that a routine of a family may have.

/// The symbols of a function at a path of Rust, as patterns in which `*` is any text: of the v0 mangling, where every
/// identifier has its length before it (and a `_` between if it begins with one), and of the legacy one, which ends in a
/// hash. https://doc.rust-lang.org/rustc/symbol-mangling/v0.html
pub fn mangled(path: &str, function: &str) -> [String; 2] {
    let parts: Vec<&str> = path.split("::").chain([function]).collect();
    let v0: String = parts
        .iter()
        .map(|part| {
            let between =
                if part.starts_with(|first: char| first == '_' || first.is_ascii_digit()) { "_" } else { "" };
            format!("{}{between}{part}", part.len())
        })
        .collect();
    let legacy: String = parts.iter().map(|part| format!("{}{part}", part.len())).collect();
    [format!("_RNv*{v0}"), format!("_ZN{legacy}17h*E")]
}

/// Whether a name fits a pattern.
pub fn fits(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let Some((middle, last)) = rest.rsplit_once('*') else { return left.ends_with(rest) };
    for part in middle.split('*') {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(last)
}

/// Whether a text is one that a symbol, a prefix or a pattern can be: what a line of the tracer's file can hold.
pub fn is_usable(text: &str) -> bool {
    text.len() <= 1000 && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'@')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_names_fit_in_both_manglings() {
        let [v0, legacy] = mangled("__rustc", "__rust_alloc");
        assert!(fits(&v0, "_RNvCsfLfy6EI15iL_7___rustc12___rust_alloc"));
        assert!(!fits(&v0, "_RNvCsfLfy6EI15iL_7___rustc19___rust_alloc_zeroed"));
        assert!(!fits(&v0, "_RNvCsfLfy6EI15iL_7___rustc26___rust_alloc_error_handler"));
        assert!(fits(&legacy, "_ZN7__rustc12__rust_alloc17h0123456789abcdefE"));
        let [v0, legacy] = mangled("mine::heap", "take");
        assert!(fits(&v0, "_RNvNtCs123_4mine4heap4take"));
        assert!(fits(&legacy, "_ZN4mine4heap4take17h0123456789abcdefE"));
    }

    #[test]
    fn a_star_is_any_text() {
        for (pattern, name, expected) in [
            ("a*c", "abbc", true),
            ("a*c", "ac", true),
            ("a*c", "abcd", false),
            ("*", "", true),
            ("a*b*c", "axbyc", true),
            ("a*b*c", "axyc", false),
            ("abc", "abc", true),
            ("abc", "abcd", false),
            ("ab*bc", "abc", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }
}
