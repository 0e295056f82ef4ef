//! Names of functions as the source has them: without what compilers append when they make parts and variants of one,
//! and demangled without what differs from build to build.

use std::fmt::Write;

/// What gcc, clang and their linkers append: `main.cold`, `f.part.0`, `f.llvm.1234`. A number may follow each.
const VARIANTS: [&str; 10] = [
    ".cold",
    ".part",
    ".isra",
    ".constprop",
    ".lto_priv",
    ".localalias",
    ".llvm",
    ".__uniq",
    ".clone",
    ".warm",
];
/// Bytes of a demangled name that are kept: names come from files that may be hostile, and grow by their
/// back-references.
const NAME_BYTES: usize = 1 << 16;
/// Depth to which C++ names are parsed and written.
const DEPTH: u32 = 128;

/// A symbol without the suffixes of variants: `main.cold` is `main`, `f.constprop.0.isra.2` is `f`.
pub fn without_variant(symbol: &str) -> &str {
    let mut name = symbol;
    loop {
        let numbered = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let unnumbered = numbered.strip_suffix('.').unwrap_or(name);
        let variant = VARIANTS.iter().find_map(|variant| unnumbered.strip_suffix(variant));
        match variant.filter(|name| !name.is_empty()) {
            Some(rest) => name = rest,
            None => return name,
        }
    }
}

/// The name of the function that a symbol is of: demangled, without variants, versions of libraries' symbols, and the
/// hashes of Rust. A symbol that is not mangled is its own name.
pub fn function_name(symbol: &str) -> String {
    let symbol = match symbol.split_once('@') {
        Some((name, _)) if !name.is_empty() => name,
        _ => symbol,
    };
    let symbol = without_variant(symbol);
    if let Ok(rust) = rustc_demangle::try_demangle(symbol) {
        return limited(|out| write!(out, "{rust:#}").is_ok()).unwrap_or_else(|| symbol.to_owned());
    }
    cpp(symbol).unwrap_or_else(|| symbol.to_owned())
}

fn cpp(symbol: &str) -> Option<String> {
    if !symbol.starts_with("_Z") && !symbol.starts_with("__Z") {
        return None;
    }
    let parsing = cpp_demangle::ParseOptions::default().recursion_limit(DEPTH);
    let writing = cpp_demangle::DemangleOptions::default().recursion_limit(DEPTH);
    let parsed = cpp_demangle::Symbol::new_with_options(symbol, &parsing).ok()?;
    limited(|out| parsed.structured_demangle(out, &writing).is_ok())
}

/// What is written, unless it is too long or the writing fails.
fn limited(write: impl FnOnce(&mut Limited) -> bool) -> Option<String> {
    let mut out = Limited::default();
    write(&mut out).then_some(out.text)
}

/// A text that fails where it grows too long.
#[derive(Default)]
struct Limited {
    text: String,
}

impl Write for Limited {
    fn write_str(&mut self, part: &str) -> std::fmt::Result {
        if self.text.len() + part.len() > NAME_BYTES {
            return Err(std::fmt::Error);
        }
        self.text.push_str(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_have_their_functions_name() {
        for (variant, name) in [
            ("main.cold", "main"),
            ("take.constprop.0.isra.12", "take"),
            ("_Z3foov.part.1.cold", "_Z3foov"),
            ("helper.llvm.1234567890", "helper"),
            ("helper.__uniq.42.llvm.7", "helper"),
            ("plain", "plain"),
            ("v1.2", "v1.2"),
            (".cold", ".cold"),
            ("x.", "x."),
        ] {
            assert_eq!(without_variant(variant), name);
        }
    }

    #[test]
    fn symbols_of_two_builds_have_one_name() {
        for (symbol, name) in [
            ("_ZN4gate5parse17h0123456789abcdefE", "gate::parse"),
            ("_ZN4gate5parse17hfedcba9876543210E.llvm.99", "gate::parse"),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            ("_RNvCsABCD_7mycrate3foo", "mycrate::foo"),
            ("_ZN5Store3addEi.constprop.0", "Store::add(int)"),
            ("_ZN5StoreC1Ev", "Store::Store()"),
            ("_ZN5StoreC2Ev", "Store::Store()"),
            ("fopen@@GLIBC_2.2.5", "fopen"),
            ("parse.part.0", "parse"),
            ("_Zwrong", "_Zwrong"),
            ("", ""),
            ("@x", "@x"),
        ] {
            assert_eq!(function_name(symbol), name, "{symbol}");
        }
    }

    #[test]
    fn hostile_symbols_neither_overflow_the_stack_nor_fill_memory() {
        let nested = format!("_Z1f{}i", "P".repeat(100_000));
        assert_eq!(function_name(&nested), nested);
        // Each argument repeats all those before it.
        let growing = format!("_Z1fI1aES_{}", "I".repeat(50_000));
        assert!(function_name(&growing).len() <= growing.len().max(NAME_BYTES));
        let doubling: String = (0..40).map(|at| format!("1xIS{}_S{}_E", at, at)).collect();
        assert!(function_name(&format!("_Z1fI{doubling}E")).len() <= NAME_BYTES.max(doubling.len() + 6));
    }
}
