//! Names of symbols as programmers wrote them.

use std::borrow::Cow;

use addr2line::demangle_auto;

/// What names of C++ and Rust begin with when they are mangled; `__` where a system puts one more before.
const MANGLED: [&str; 3] = ["_Z", "__Z", "_R"];

/// A symbol's name, demangled if it is mangled. A name of C is left as it is: read as a type of C++, `f` is `float`.
pub fn demangled(name: &str) -> String {
    match MANGLED.iter().any(|start| name.starts_with(start)) {
        true => demangle_auto(Cow::from(name), None).into_owned(),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Before, variables and functions of C with such names were `float`, `unsigned short`, `char*` and `std`.
    #[test]
    fn names_of_c_that_are_types_of_cpp_when_mangled_stay() {
        for name in ["f", "t", "v", "Pc", "PKc", "St", "Ss", "Da", "main", "_f", ""] {
            assert_eq!(demangled(name), name);
        }
        assert_eq!(demangled("_ZN4pool4takeEm"), "pool::take(unsigned long)");
        assert_eq!(demangled("_RNvC5crate4main"), "crate::main");
    }
}
