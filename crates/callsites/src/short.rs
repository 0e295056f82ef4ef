//! A demangled name as short as it stays clear: without parameters, return type and the arguments of templates.
//! `void std::vector<int, std::allocator<int> >::push_back(int&&)` is `std::vector<…>::push_back`.

/// Bytes of a name that are parsed. Names come from files that may be hostile, and brackets in brackets are parsed by
/// recursion.
const PARSED_BYTES: usize = 4096;

/// Templates within templates that are distinguished.
pub(crate) const DEEPEST: usize = 6;

/// The short form of a demangled C, C++ or Rust name; the name itself when nothing would be left.
pub fn short(name: &str) -> String {
    shortened(name, 0)
}

/// The short form with the arguments of templates, so deep in one another.
pub(crate) fn shortened(name: &str, depth: usize) -> String {
    let end = (0..=PARSED_BYTES.min(name.len())).rev().find(|&end| name.is_char_boundary(end)).unwrap_or(0);
    let name = &name[..end];
    let mut out = String::with_capacity(name.len().min(80));
    let mut rest = without_clone(name);
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '(' => bracketed(rest, &mut out),
            '<' => templated(rest, depth, &mut out),
            '[' if hash(rest).is_some() => hash(rest).unwrap_or(1),
            'o' if begins_operator(rest, &out) => operator(rest, &mut out),
            _ => {
                out.push(first);
                first.len_utf8()
            }
        };
        rest = rest.get(taken..).unwrap_or("");
    }
    let out = without_return_type(without_qualifiers(&out));
    let out = without_rust_hash(out).replace("std::__cxx11::", "std::").replace("{{closure}}", "{closure}");
    if out.trim().is_empty() { name.to_owned() } else { out }
}

/// Without ` [clone .cold]`, and without the version of a library's symbol: `fopen@@GLIBC_2.2.5`.
fn without_clone(name: &str) -> &str {
    let name = name.split(" [clone").next().unwrap_or(name);
    match name.split_once('@') {
        Some((function, _)) if !function.is_empty() => function,
        _ => name,
    }
}

/// Parameters are left out; an anonymous namespace is named as gcc names it.
fn bracketed(rest: &str, out: &mut String) -> usize {
    const ANONYMOUS: &str = "(anonymous namespace)";
    if rest.starts_with(ANONYMOUS) {
        out.push_str("{anonymous}");
        return ANONYMOUS.len();
    }
    if out.is_empty() {
        // `(below main)`
        let end = closing(rest);
        out.push_str(&rest[..end]);
        return end;
    }
    closing(rest)
}

/// `<int, char>` becomes `<…>`; of Rust's `<a::B<T> as c::D>` the type's name and the trait's last part stay.
fn templated(rest: &str, depth: usize, out: &mut String) -> usize {
    let end = closing(rest);
    let inner = rest.get(1..end.saturating_sub(1)).unwrap_or("");
    let starts_path = out.is_empty() || out.ends_with([' ', '&', '*']);
    if starts_path && rest[end..].starts_with("::") {
        match top_level(inner, " as ") {
            Some((kind, of)) => {
                let of = short(of);
                out.push_str(&format!("<{} as {}>", short(kind), of.rsplit("::").next().unwrap_or(&of)));
            }
            None => out.push_str(&format!("<{}>", short(inner))),
        }
    } else if depth > 0 {
        out.push_str(&arguments(&rest[..end], depth));
    } else if out.ends_with("::") && rest[end..].is_empty() {
        // Rust's `Vec::<T>` at the end adds nothing.
        out.truncate(out.len() - 2);
    } else if !inner.is_empty() {
        out.push_str("<…>");
    }
    end
}

/// A name or its part with the templates in it so deep in one another.
pub(crate) fn arguments(text: &str, depth: usize) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        let (before, from) = rest.split_at(start);
        out.push_str(before);
        let end = closing(from);
        let inner = from[1..end].strip_suffix('>').unwrap_or(&from[1..end]).trim_end();
        match depth.checked_sub(1) {
            Some(depth) => out.push_str(&format!("<{}>", arguments(inner, depth))),
            None => out.push_str("<…>"),
        }
        rest = &from[end..];
    }
    out + rest
}

/// `text` around the first `separator` that is in no bracket.
fn top_level<'a>(text: &'a str, separator: &str) -> Option<(&'a str, &'a str)> {
    let mut depth = 0_i32;
    for (at, c) in text.char_indices() {
        if depth == 0 && text[at..].starts_with(separator) {
            return Some((&text[..at], &text[at + separator.len()..]));
        }
        match c {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' if text[..at].ends_with('-') => {}
            '>' | ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The index after the bracket that closes the one `text` begins with; its end when none does.
fn closing(text: &str) -> usize {
    let mut depth = 0_i32;
    for (at, c) in text.char_indices() {
        match c {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' if text[..at].ends_with(['-', '=']) => {}
            '>' | ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + c.len_utf8();
        }
    }
    text.len()
}

/// Length of the hash that follows a crate in Rust's newer names: `[0123456789abcdef]`.
fn hash(rest: &str) -> Option<usize> {
    let (inner, _) = rest.strip_prefix('[')?.split_once(']')?;
    (inner.len() >= 8 && inner.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(inner.len() + 2)
}

fn begins_operator(rest: &str, out: &str) -> bool {
    let whole_word = !out.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    let after = rest.strip_prefix("operator").and_then(|after| after.chars().next());
    whole_word && after.is_some_and(|c| !c.is_alphanumeric() && c != '_')
}

/// `operator()`, `operator<<`, `operator new[]`, `operator bool`.
fn operator(rest: &str, out: &mut String) -> usize {
    const WORD: &str = "operator";
    out.push_str(WORD);
    let after = &rest[WORD.len()..];
    if after.starts_with("()") || after.starts_with("[]") {
        out.push_str(&after[..2]);
        return WORD.len() + 2;
    }
    if after.starts_with(' ') {
        // A conversion, `new` or `delete`: up to its parameters.
        let end = top_level(after, "(").map_or(after.len(), |(before, _)| before.len());
        let shown = after[..end].trim();
        out.push(' ');
        out.push_str(&if shown.contains('<') { short(shown) } else { shown.to_owned() });
        return WORD.len() + end;
    }
    let end = after.find(|c: char| !"<>=!+-*/%^&|~,".contains(c)).unwrap_or(after.len());
    // After the sign of `operator==<int>` its template begins.
    let sign =
        after[..end].strip_suffix('<').filter(|sign| !matches!(*sign, "" | "<")).unwrap_or(&after[..end]);
    out.push_str(sign);
    let spaced = after[sign.len()..].starts_with(" <");
    WORD.len() + sign.len() + usize::from(spaced)
}

fn without_qualifiers(mut name: &str) -> &str {
    loop {
        let trimmed = name.trim_end();
        let shorter = [" const", " volatile", " &&", " &"].iter().find_map(|end| trimmed.strip_suffix(end));
        match shorter {
            Some(shorter) => name = shorter,
            None => return trimmed,
        }
    }
}

/// Templates' names begin with their return type.
fn without_return_type(name: &str) -> &str {
    let end = name.find("operator").unwrap_or(name.len());
    let mut depth = 0_i32;
    let mut start = 0;
    for (at, c) in name[..end].char_indices() {
        match c {
            '<' | '(' | '{' => depth += 1,
            '>' | ')' | '}' => depth -= 1,
            ' ' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    name[start..].trim_start_matches(['*', '&'])
}

/// Without the `::h0123456789abcdef` of Rust's older names.
fn without_rust_hash(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((path, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => path,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_c_plus_plus_lose_parameters_templates_and_return_types() {
        for (name, shown) in [
            ("insert(std::unique_ptr<Tree, std::default_delete<Tree> >&, std::string const&)", "insert"),
            (
                "void std::vector<int, std::allocator<int> >::_M_realloc_insert<int const&>(int)",
                "std::vector<…>::_M_realloc_insert<…>",
            ),
            (
                "std::__cxx11::basic_string<char>::_M_mutate(unsigned long) const",
                "std::basic_string<…>::_M_mutate",
            ),
            ("(anonymous namespace)::leak()", "{anonymous}::leak"),
            ("std::ostream& operator<< <char>(std::ostream&, char)", "operator<<<…>"),
            ("bool std::operator==<char>(std::string const&)", "std::operator==<…>"),
            ("bool operator< <A>(A const&, A const&)", "operator<<…>"),
            ("Set::operator()(int) const", "Set::operator()"),
            ("Set::operator[](int)", "Set::operator[]"),
            ("operator new[](unsigned long)", "operator new[]"),
            ("Set::operator bool() const", "Set::operator bool"),
            ("main::{lambda(int)#1}::operator()(int) const", "main::{lambda#1}::operator()"),
            ("foo() [clone .cold]", "foo"),
            ("my_operator_thing(int)", "my_operator_thing"),
            ("Tree* keep<Tree>(Tree const&)", "keep<…>"),
            ("main", "main"),
            ("pthread_create@@GLIBC_2.34", "pthread_create"),
            ("fopen@GLIBC_2.2.5", "fopen"),
            ("(below main)", "(below main)"),
        ] {
            assert_eq!(short(name), shown, "{name}");
        }
    }

    #[test]
    fn names_of_rust_lose_parameters_and_hashes() {
        for (name, shown) in [
            ("rs::build", "rs::build"),
            ("rs::build::h0123456789abcdef", "rs::build"),
            ("rs[8787f43e282added]::main", "rs::main"),
            ("rs::main::{{closure}}", "rs::main::{closure}"),
            ("<rs::Store as core::ops::drop::Drop>::drop", "<rs::Store as Drop>::drop"),
            (
                "<alloc::vec::Vec<T,A> as core::iter::FromIterator<T>>::from_iter",
                "<alloc::vec::Vec<…> as FromIterator<…>>::from_iter",
            ),
            ("<alloc::alloc::Global>::alloc_impl", "<alloc::alloc::Global>::alloc_impl"),
            ("std::collections::HashMap<K,V>::new::<u8>", "std::collections::HashMap<…>::new"),
            (
                "core::ops::function::FnOnce::call_once::<fn(u32) -> alloc::string::String>",
                "core::ops::function::FnOnce::call_once",
            ),
        ] {
            assert_eq!(short(name), shown, "{name}");
        }
    }

    #[test]
    fn truncated_and_hostile_names_are_no_trouble() {
        for name in
            ["<", ">", "a<b", "((((", "operator", "operator<", "x>>>y", " ", "é<ü>(ß", "<a as", "[0]", "::<"]
        {
            assert!(!short(name).is_empty(), "{name}");
        }
        for nested in ["<", "<<a>::b", "(", "<a as "] {
            assert!(short(&nested.repeat(100_000)).len() <= PARSED_BYTES);
        }
        assert!(short(&format!("{}{}", "<".repeat(50_000), ">::b".repeat(50_000))).len() <= PARSED_BYTES);
    }
}
