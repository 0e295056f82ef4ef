//! The table: families with all their symbols, from one file or several.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;

use heaptoll_reftrace::Routine;

use crate::allocator_symbols::argument::{self, Argument};
use crate::allocator_symbols::definition::{Definition, FamilyDefinition};
use crate::allocator_symbols::error::TableError;
use crate::allocator_symbols::names;

/// The number of C's family, which the tracer recognises without a table.
pub const C_FAMILY: u8 = 0;
/// Most families: a record has eight bits for the number.
const FAMILIES: usize = 255;

/// A family of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    /// Its name.
    pub name: String,
    /// What it is, in words.
    pub about: String,
    /// Whether its routines only forward to those of another family, where there is one.
    pub forwards: bool,
    /// The family that it is a part of.
    pub(crate) part_of: Option<String>,
    /// Patterns of functions that call malloc.
    pub(crate) sends_to_malloc: Vec<String>,
    pub(crate) symbols: Vec<Symbol>,
    /// Whether it is recognised by some of its symbols only.
    pub(crate) has_signs: bool,
    /// Functions that only its routines call.
    pub(crate) inside: Vec<String>,
}

/// A symbol, whole or as a pattern.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Symbol {
    pub(crate) name: String,
    pub(crate) routine: Routine,
    /// Whether its family is recognised by it.
    pub(crate) is_sign: bool,
    arguments: [Argument; 3],
}

/// Families by number, from 1.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    families: Vec<Family>,
}

impl Table {
    /// Reads a table.
    ///
    /// # Errors
    /// [`TableError`].
    pub fn read(path: &Path) -> Result<Table, TableError> {
        Table::default().with(path)
    }

    /// The table with the families of another file; those of a name that it has take the place of its own.
    ///
    /// # Errors
    /// [`TableError`].
    pub fn with(mut self, path: &Path) -> Result<Table, TableError> {
        let text = std::fs::read_to_string(path)
            .map_err(|cause| TableError::Unreadable { path: path.into(), cause })?;
        let not_understood = |reason: String| TableError::NotUnderstood { path: path.into(), reason };
        let defined: Definition = toml::from_str(&text).map_err(|error| not_understood(error.to_string()))?;
        for one in &defined.family {
            let family = family(one).map_err(|reason| TableError::Family {
                path: path.into(),
                family: one.name.clone(),
                reason,
            })?;
            match self.families.iter_mut().find(|other| other.name == family.name) {
                Some(other) => *other = family,
                None => self.families.push(family),
            }
        }
        if self.families.len() > FAMILIES {
            return Err(not_understood(format!("there are more than {FAMILIES} families")));
        }
        for family in &self.families {
            if let Some(whole) = &family.part_of
                && !self.families.iter().any(|other| other.name == *whole && other.part_of.is_none())
            {
                let reason = format!("it is a part of `{whole}`, not a family");
                let family = family.name.clone();
                return Err(TableError::Family { path: path.into(), family, reason });
            }
        }
        Ok(self)
    }

    /// The families, in the order of their numbers.
    pub fn families(&self) -> &[Family] {
        &self.families
    }

    /// The name of the family with a number, of the whole where it is a part of one; `None` for C's.
    pub fn name(&self, number: u8) -> Option<&str> {
        let family = self.families.get(usize::from(number).checked_sub(1)?)?;
        Some(family.part_of.as_deref().unwrap_or(&family.name))
    }

    /// The lines by which the tracer recognises routines (`tracer/symbols.c`), of the families for which `follow` holds.
    pub fn lines(&self, follow: impl Fn(&Family) -> bool) -> String {
        let mut lines = String::new();
        for (family, number) in self.families.iter().zip(1u8..).filter(|(family, _)| follow(family)) {
            for Symbol { name, routine, is_sign, arguments: [first, second, third] } in &family.symbols {
                let sign = if *is_sign { "!" } else { "" };
                // Writing to a string does not fail.
                let _ = writeln!(lines, "{number}{sign} {} {first} {second} {third} {name}", *routine as u8);
            }
            for name in &family.inside {
                let sign = if family.has_signs { "!" } else { "" };
                let _ = writeln!(lines, "{number}{sign} inside - - - {name}");
            }
        }
        lines
    }
}

/// The symbols that a function of a family may have.
fn spellings(family: &FamilyDefinition, function: &str) -> Vec<String> {
    let prefixed = family.prefixes.iter().map(|prefix| format!("{prefix}{function}"));
    prefixed.chain(family.rust_paths.iter().flat_map(|path| names::mangled(path, function))).collect()
}

fn family(defined: &FamilyDefinition) -> Result<Family, String> {
    if defined.name.trim().is_empty() || defined.name.chars().any(char::is_control) {
        return Err("its name is empty or has control characters".into());
    }
    let texts = defined
        .prefixes
        .iter()
        .chain(&defined.inside)
        .chain(&defined.rust_paths)
        .chain(&defined.sends_to_malloc);
    if let Some(text) =
        texts.chain(defined.routines.iter().map(|one| &one.symbol)).find(|text| !names::is_usable(text))
    {
        return Err(format!("`{}` cannot be (a part of) a symbol", text.escape_debug()));
    }
    if defined.prefixes.is_empty() || defined.routines.is_empty() {
        return Err("it has no prefix or no routine (a prefix may be empty: [\"\"])".into());
    }
    let mut symbols: Vec<Symbol> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for one in &defined.routines {
        if one.symbol.is_empty() {
            return Err("a routine has no symbol".into());
        }
        let (routine, arguments) =
            argument::of(one).map_err(|reason| format!("routine `{}`: {reason}", one.symbol))?;
        for name in spellings(defined, &one.symbol) {
            if known.insert(name.clone(), symbols.len()).is_some() {
                return Err(format!("two routines have the symbol `{name}`"));
            }
            let is_sign = defined.signs.contains(&one.symbol);
            symbols.push(Symbol { name, routine, is_sign, arguments });
        }
    }
    let unknown = |sign: &&String| defined.routines.iter().all(|one| one.symbol != **sign);
    if let Some(sign) = defined.signs.iter().find(unknown) {
        return Err(format!("`{sign}` is a sign, and no routine has that symbol"));
    }
    Ok(Family {
        name: defined.name.clone(),
        about: defined.about.clone(),
        forwards: defined.forwards,
        part_of: defined.part_of.clone(),
        sends_to_malloc: defined.sends_to_malloc.iter().flat_map(|name| spellings(defined, name)).collect(),
        symbols,
        has_signs: !defined.signs.is_empty(),
        inside: defined.inside.clone(),
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn ours() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("allocator-symbols.toml")
    }

    fn read_from(text: &str, table: Table) -> Result<Table, TableError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.toml");
        std::fs::write(&path, text).unwrap();
        table.with(&path)
    }

    fn made(text: &str) -> Result<Table, TableError> {
        read_from(text, Table::read(&ours())?)
    }

    #[test]
    fn the_table_of_the_tool_is_understood() {
        let table = Table::read(&ours()).unwrap();
        let lines = table.lines(|family| !family.forwards);
        for line in [
            "1! 1 0 - - mi_malloc",
            "1! 6 1 0 - mi_malloc_aligned",
            "3 4 0 1 - _rjem_rallocx",
            "1! inside - - - _mi_malloc_generic",
        ] {
            assert!(lines.lines().any(|one| one == line), "{line}");
        }
        assert!(!lines.contains("__rust_alloc"), "what forwards is followed on request");
        assert_eq!((table.name(1), table.name(2), table.name(0)), (Some("mimalloc"), Some("mimalloc"), None));
        assert!(table.lines(|family| family.forwards).contains("_RNv*7___rustc14___rust_realloc\n"));
    }

    #[test]
    fn a_file_adds_families_and_replaces_those_of_its_names() {
        let text = "[[family]]\nname = \"arena\"\nprefixes = [\"arena_\"]\nroutines = [{ symbol = \"take\", is = \
            \"malloc\", size = 1 }, { symbol = \"give\", is = \"free\", block = 1 }]\n[[family]]\nname = \"dlmalloc\"\n\
            prefixes = [\"lea_\"]\nroutines = [{ symbol = \"malloc\", is = \"malloc\", size = 0 }]";
        let table = made(text).unwrap();
        let lines = table.lines(|_| true);
        assert!(
            lines.contains(" 1 1 - - arena_take\n")
                && lines.contains("lea_malloc")
                && !lines.contains("dlmalloc")
        );
        assert_eq!(table.name(table.families().len() as u8), Some("arena"));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_the_reason() {
        let family = |rest: &str| format!("[[family]]\nname = \"x\"\n{rest}");
        let of = |rest: &str| made(&family(rest)).unwrap_err().to_string();
        assert!(of("prefixes = [\"a b\"]\nroutines = []").contains("cannot be (a part of) a symbol"));
        assert!(of("prefixes = [\"x\"]\nroutines = []").contains("no prefix or no routine"));
        let twice = "{ symbol = \"m\", is = \"malloc\", size = 0 }";
        assert!(of(&format!("prefixes = [\"\"]\nroutines = [{twice}, {twice}]")).contains("two routines"));
        assert!(
            of(&format!("part_of = \"y\"\nprefixes = [\"\"]\nroutines = [{twice}]"))
                .contains("a part of `y`")
        );
        assert!(of("prefix = \"x\"").contains("unknown field"), "{}", of("prefix = \"x\""));
        let missing = Table::read(Path::new("/nonexistent/table.toml")).unwrap_err().to_string();
        assert!(missing.contains("cannot be read"), "{missing}");
    }

    proptest::proptest! {
        #[test]
        fn no_text_breaks_the_reader(text in "\\PC*") {
            let _ = read_from(&text, Table::default());
        }

        #[test]
        fn a_line_of_the_tracers_file_is_one_symbol(name in "\\PC{0,12}") {
            let quoted = format!("{name:?}");
            let text = format!("[[family]]\nname = \"x\"\nprefixes = [{quoted}]\nroutines = [{{ symbol = \"m\", is = \"malloc\", size = 0 }}]");
            if let Ok(table) = read_from(&text, Table::default()) {
                let lines = table.lines(|family| family.name == "x");
                proptest::prop_assert_eq!(lines.lines().count(), 1);
                proptest::prop_assert_eq!(lines.split_whitespace().count(), 6);
            }
        }
    }
}
