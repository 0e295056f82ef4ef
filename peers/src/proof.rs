//! Whether an object serves as a manager: it exports all of the malloc family, and passes the smoke run. If it lacks a
//! member of the family, glibc serves that call, with blocks that are not glibc's.

use std::collections::BTreeMap;
use std::path::Path;

use heaptoll_peers::ManagerRecipe;
use heaptoll_preflight::smoke::{self, Expected};

/// Proves an object by `prover`, which has the hidden smoke subcommand.
///
/// # Errors
/// What does not hold.
pub fn prove(
    prover: &Path,
    recipe: &ManagerRecipe,
    object: &Path,
    environment: &BTreeMap<String, String>,
) -> Result<(), String> {
    let missing = missing(object)?;
    if !missing.is_empty() {
        let missing = missing.join(", ");
        return Err(format!(
            "it does not export {missing}: those calls would go to glibc with foreign blocks"
        ));
    }
    let expected = Expected { overflow: recipe.checks_overflow(), operators: true };
    let environment = environment.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    smoke::prove(prover, object, expected, environment)
}

/// The functions of a whole replacement of malloc that an object does not export.
fn missing(object: &Path) -> Result<Vec<&'static str>, String> {
    let facts = heaptoll_elf::read(object).map_err(|error| error.to_string())?;
    let lacks = |name: &&str| !facts.exports.iter().any(|export| export == name);
    Ok(heaptoll_elf::family::replacement().filter(lacks).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn what_an_object_does_not_export_is_missing_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let (source, object) = (dir.path().join("a.c"), dir.path().join("a.so"));
        let text = "void *malloc(unsigned long n){return (void*)n;} void free(void*p){(void)p;}
             __attribute__((visibility(\"hidden\"))) void *calloc(unsigned long a, unsigned long b){return (void*)(a*b);}
             extern void *realloc(void*, unsigned long); void *use(void*p){return realloc(p, 1);}";
        std::fs::write(&source, text).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-fno-builtin", "-o"]).arg(&object).arg(&source);
        assert!(compiler.status().unwrap().success());
        let missing = missing(&object).unwrap();
        assert!(!missing.contains(&"malloc") && !missing.contains(&"free"));
        // One is hidden, the other only used.
        assert!(missing.contains(&"calloc") && missing.contains(&"realloc"));
        assert_eq!(missing.len(), heaptoll_elf::family::replacement().count() - 2);
        assert!(super::missing(&source).is_err(), "it is no object");
    }
}
