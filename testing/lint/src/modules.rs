//! Circles of modules: files of a crate that use each other, directly or over others. The crate's root is left out: it
//! names all modules, and all may use what it exports. So is a module that is like a crate, for the files in its folder.
//! Code for tests is left out too.
//!
//! Modules that stand apart, as the commands of the command line do, use nothing of each other at all.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use syn::visit::Visit;

use crate::{Error, Finding};

/// Names of a module from the crate's root; empty for the root.
pub(crate) type Module = Vec<String>;

/// Where the circles are listed that are known and not yet cut, from the repository's root.
pub const KNOWN: &str = "testing/lint/circles.toml";

/// Source folders with circles, and how many; a folder that is not listed has none.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    /// Folders whose modules, each with the files in its own folder, use none of the others.
    apart: Vec<PathBuf>,
    /// Folders whose modules are each like a crate, with a root.
    roots: Vec<PathBuf>,
    circles: BTreeMap<String, usize>,
}

/// The modules of each source folder, and what they use.
#[derive(Default)]
pub struct Crates(BTreeMap<PathBuf, Crate>);

#[derive(Default)]
struct Crate {
    files: BTreeMap<Module, PathBuf>,
    uses: BTreeMap<Module, BTreeSet<Module>>,
}

/// The crates that these files make; what they use is added file by file.
pub fn crates(files: &[PathBuf]) -> Crates {
    let mut crates = Crates::default();
    for file in files {
        if let Some((folder, module)) = place(file) {
            crates.0.entry(folder).or_default().files.insert(module, file.clone());
        }
    }
    crates
}

impl Crates {
    pub fn add(&mut self, file: &Path, syntax: &syn::File) {
        if let Some((folder, module)) = place(file)
            && let Some(one) = self.0.get_mut(&folder)
        {
            let used = used(&module, syntax, one.files.keys().collect());
            one.uses.insert(module, used);
        }
    }

    /// A finding a circle, at its first file, where a crate has more than its known number; a finding a crate where it
    /// has fewer, so that the list only shrinks. Also a finding for each use of a module by another that stands apart
    /// from it.
    ///
    /// # Errors
    /// The list of known circles cannot be read.
    pub fn findings(&self, root: &Path) -> Result<Vec<Finding>, Error> {
        let path = root.join(KNOWN);
        let text = std::fs::read_to_string(&path).map_err(Error::read(&path))?;
        let known: Known = toml::from_str(&text).map_err(|e| Error::rules(&path, e))?;
        let mut findings = Vec::new();
        for (folder, Crate { files, uses }) in &self.0 {
            for parent in modules_of(folder, &known.apart) {
                findings.extend(between(&parent, uses, files));
            }
            let roots = modules_of(folder, &known.roots);
            let folder = folder.to_string_lossy();
            let allowed = known.circles.get(&*folder).copied().unwrap_or(0);
            findings.extend(against(allowed, &folder, &circles(uses, &roots), uses, files));
        }
        Ok(findings)
    }
}

/// The modules of a crate that have these folders, which other crates may have.
fn modules_of(source: &Path, folders: &[PathBuf]) -> Vec<Module> {
    let own = folders.iter().filter_map(|path| path.strip_prefix(source).ok());
    own.map(|path| path.iter().map(|part| part.to_string_lossy().into_owned()).collect()).collect()
}

/// The source folder that a file belongs to, and its module. Files for tests, benches and build scripts have none.
pub(crate) fn place(file: &Path) -> Option<(PathBuf, Module)> {
    let parts: Vec<String> = file.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let source = parts.iter().position(|part| part == "src")?;
    let mut module: Module = parts.get(source + 1..)?.to_vec();
    let last = module.pop()?.strip_suffix(".rs")?.to_string();
    if !matches!(&*last, "mod" | "lib" | "main") {
        module.push(last);
    }
    let for_tests = |name: &String| name == "tests" || name.ends_with("_tests") || name == "testing";
    (!module.iter().any(for_tests)).then(|| (parts.iter().take(source + 1).collect(), module))
}

/// The modules that a file uses, other than itself and the root.
pub(crate) fn used(module: &Module, syntax: &syn::File, known: BTreeSet<&Module>) -> BTreeSet<Module> {
    let mut visitor = Paths { module, inside: module.clone(), known, used: BTreeSet::new() };
    visitor.visit_file(syntax);
    let mut used = visitor.used;
    used.remove(module);
    used
}

struct Paths<'a> {
    /// The file's module.
    module: &'a Module,
    /// The module whose items are visited: the file's, or one written out in it. `self` and `super` are from here.
    inside: Module,
    known: BTreeSet<&'a Module>,
    used: BTreeSet<Module>,
}

impl Paths<'_> {
    /// Takes the longest part of `names` that is a module.
    fn add(&mut self, names: &[String]) {
        let (mut module, rest) = match names.first().map(String::as_str) {
            Some("crate") => (Module::new(), names.get(1..)),
            Some("self") => (self.inside.clone(), names.get(1..)),
            Some("super") => {
                let mut parent = self.inside.clone();
                parent.pop();
                (parent, names.get(1..))
            }
            _ => (self.inside.clone(), Some(names)),
        };
        for name in rest.unwrap_or_default() {
            if name == "super" {
                module.pop();
                continue;
            }
            module.push(name.clone());
            if !self.known.contains(&module) {
                module.pop();
                break;
            }
        }
        // A module written out in the file is the file's.
        if module.starts_with(self.module) && !self.known.contains(&module) {
            module.clone_from(self.module);
        }
        if !module.is_empty() {
            self.used.insert(module);
        }
    }

    fn add_tree(&mut self, before: &mut Vec<String>, tree: &syn::UseTree) {
        match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.add_tree(before, &path.tree);
                before.pop();
            }
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_tree(before, tree)),
            syn::UseTree::Name(name) => {
                before.push(name.ident.to_string());
                self.add(before);
                before.pop();
            }
            syn::UseTree::Rename(rename) => {
                before.push(rename.ident.to_string());
                self.add(before);
                before.pop();
            }
            syn::UseTree::Glob(_) => self.add(before),
        }
    }
}

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !for_tests(&item.attrs) {
            self.inside.push(item.ident.to_string());
            syn::visit::visit_item_mod(self, item);
            self.inside.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !for_tests(&item.attrs) {
            self.add_tree(&mut Vec::new(), &item.tree);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !for_tests(&item.attrs) {
            syn::visit::visit_item_fn(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.add(&names);
        }
        syn::visit::visit_path(self, path);
    }
}

/// `#[cfg(test)]` or `#[cfg(all(test, ...))]`.
pub(crate) fn for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) if list.path.is_ident("cfg") => {
            let text = list.tokens.to_string();
            text == "test" || text.starts_with("all (test") || text.starts_with("any (test")
        }
        _ => false,
    })
}

/// Uses of one module in `parent` by another one, or by the files in its folder.
fn between(
    parent: &Module,
    uses: &BTreeMap<Module, BTreeSet<Module>>,
    files: &BTreeMap<Module, PathBuf>,
) -> Vec<Finding> {
    let name = |module: &Module| module.strip_prefix(parent.as_slice())?.first().cloned();
    let mut findings = Vec::new();
    for (module, used) in uses {
        let Some(from) = name(module) else { continue };
        for target in used.iter().filter(|target| name(target).is_some_and(|to| to != from)) {
            findings.push(Finding {
                path: files.get(module).cloned().unwrap_or_default().to_string_lossy().into_owned(),
                line: 0,
                text: format!(
                    "{} uses {}: the modules of {} use nothing of each other; move what both need out of it",
                    module.join("::"),
                    target.join("::"),
                    parent.join("::")
                ),
            });
        }
    }
    findings
}

/// Groups of modules that use each other, each in order. What a root names is left out: the crate's, and the modules right
/// below those of `roots`.
fn circles(uses: &BTreeMap<Module, BTreeSet<Module>>, roots: &[Module]) -> Vec<Vec<Module>> {
    let numbers: BTreeMap<&Module, usize> = uses.keys().zip(0..).collect();
    let is_root =
        |module: &Module| module.split_last().is_none_or(|(_, above)| roots.iter().any(|root| root == above));
    let mut graph = DiGraphMap::<usize, ()>::new();
    for (module, used) in uses.iter().filter(|(module, _)| !is_root(module)) {
        for target in used {
            if let (Some(&from), Some(&to)) = (numbers.get(module), numbers.get(target)) {
                graph.add_edge(from, to, ());
            }
        }
    }
    let names: Vec<&Module> = uses.keys().collect();
    let mut circles: Vec<Vec<Module>> = tarjan_scc(&graph)
        .into_iter()
        .filter(|group| group.len() > 1)
        .map(|group| {
            let mut circle: Vec<Module> =
                group.into_iter().filter_map(|at| names.get(at).map(|&m| m.clone())).collect();
            circle.sort();
            circle
        })
        .collect();
    circles.sort();
    circles
}

fn against(
    allowed: usize,
    folder: &str,
    circles: &[Vec<Module>],
    uses: &BTreeMap<Module, BTreeSet<Module>>,
    files: &BTreeMap<Module, PathBuf>,
) -> Vec<Finding> {
    match circles.len().cmp(&allowed) {
        Ordering::Equal => Vec::new(),
        Ordering::Greater => circles.iter().map(|circle| finding(circle, uses, files)).collect(),
        Ordering::Less => {
            let text = format!("{folder} has {} circles, not {allowed}: lower its number", circles.len());
            vec![Finding { path: KNOWN.to_string(), line: 0, text }]
        }
    }
}

fn finding(
    circle: &[Module],
    uses: &BTreeMap<Module, BTreeSet<Module>>,
    files: &BTreeMap<Module, PathBuf>,
) -> Finding {
    let arrows: Vec<String> = circle
        .iter()
        .map(|module| {
            let to: Vec<String> = uses
                .get(module)
                .into_iter()
                .flatten()
                .filter(|target| circle.contains(target))
                .map(|target| target.join("::"))
                .collect();
            format!("{} uses {}", module.join("::"), to.join(", "))
        })
        .collect();
    let path = circle.first().and_then(|first| files.get(first)).cloned().unwrap_or_default();
    Finding {
        path: path.to_string_lossy().into_owned(),
        line: 0,
        text: format!("modules use each other in a circle: {}", arrows.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(text: &str) -> Module {
        text.split("::").filter(|name| !name.is_empty()).map(ToString::to_string).collect()
    }

    fn uses(of: &str, text: &str) -> Vec<String> {
        let known = ["", "a", "a::b", "a::b::c", "d"].map(module);
        let syntax = syn::parse_file(text).expect("it parses");
        let used = used(&module(of), &syntax, known.iter().collect());
        used.iter().map(|module| module.join("::")).collect()
    }

    #[test]
    fn files_become_modules() {
        assert_eq!(place(Path::new("crates/x/src/lib.rs")), Some(("crates/x/src".into(), module(""))));
        assert_eq!(place(Path::new("crates/x/src/a/b.rs")), Some(("crates/x/src".into(), module("a::b"))));
        assert_eq!(place(Path::new("crates/x/src/a/mod.rs")), Some(("crates/x/src".into(), module("a"))));
        assert_eq!(place(Path::new("crates/x/src/a/tests.rs")), None);
        assert_eq!(place(Path::new("crates/x/tests/a.rs")), None);
        assert_eq!(place(Path::new("crates/x/src/a.c")), None);
    }

    #[test]
    fn paths_are_resolved_to_the_longest_module() {
        assert_eq!(uses("d", "use crate::a::b::{c::X, Y};"), ["a::b", "a::b::c"]);
        assert_eq!(uses("a::b", "use super::Z; use super::super::d::W;"), ["a", "d"]);
        assert_eq!(uses("a", "mod b; fn f() { b::g(); crate::d::h(); }"), ["a::b", "d"]);
        assert_eq!(uses("d", "use crate::Root; use std::a::B;"), [""; 0]);
        assert_eq!(uses("d", "fn f(x: &crate::a::T) {}"), ["a"]);
    }

    #[test]
    fn super_in_a_module_written_out_in_a_file_is_that_file() {
        assert_eq!(uses("a::b", "mod fast { use super::X; fn f() { super::g(); } }"), [""; 0]);
        assert_eq!(uses("a::b", "mod fast { use super::super::X; use super::c::Y; }"), ["a", "a::b::c"]);
    }

    #[test]
    fn code_for_tests_is_left_out() {
        assert_eq!(uses("d", "#[cfg(test)] mod tests { use crate::a::X; }"), [""; 0]);
        assert_eq!(uses("d", "#[cfg(test)] use crate::a::X;"), [""; 0]);
    }

    #[test]
    fn known_circles_may_only_become_fewer() {
        let circle = vec![module("a"), module("b")];
        let found = |allowed| {
            against(allowed, "x/src", std::slice::from_ref(&circle), &BTreeMap::new(), &BTreeMap::new()).len()
        };
        assert_eq!((found(0), found(1), found(2)), (1, 0, 1));
    }

    #[test]
    fn modules_that_stand_apart_use_nothing_of_each_other() {
        let between = |from: &str, to: &str| {
            let uses = BTreeMap::from([(module(from), BTreeSet::from([module(to)]))]);
            between(&module("command"), &uses, &BTreeMap::new()).len()
        };
        assert_eq!(between("command::delay", "command::run"), 1);
        assert_eq!(between("command::delay::show", "command::run::arguments"), 1);
        assert_eq!(between("command::delay::show", "command::delay::measure"), 0, "one command");
        assert_eq!(between("command::delay", "traced"), 0, "what all may use");
        assert_eq!(between("command", "command::run"), 0, "the list of commands");
    }

    #[test]
    fn the_files_of_a_module_that_is_like_a_crate_may_use_what_it_has() {
        let circles = |module_of_roots: &str, edges: &[(&str, &str)]| {
            let uses = edges.iter().map(|(from, to)| (module(from), BTreeSet::from([module(to)]))).collect();
            circles(&uses, &[module(module_of_roots)]).len()
        };
        let parent_and_child = [("a", "a::b"), ("a::b", "a")];
        assert_eq!(circles("", &parent_and_child), 0);
        assert_eq!(circles("d", &parent_and_child), 1, "another folder's modules are");
        assert_eq!(circles("", &[("a", "a::b"), ("a::b", "d"), ("d", "a::b")]), 0, "d is like a crate too");
        assert_eq!(circles("", &[("a::b", "a::c"), ("a::c", "a::b")]), 1);
    }

    #[test]
    fn a_circle_is_found_and_a_way_down_is_not() {
        let graph = |edges: &[(&str, &str)]| {
            let mut uses: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
            for (from, to) in edges {
                uses.entry(module(from)).or_default().insert(module(to));
                uses.entry(module(to)).or_default();
            }
            circles(&uses, &[])
        };
        assert_eq!(graph(&[("a", "b"), ("b", "c"), ("a", "c")]), Vec::<Vec<Module>>::new());
        assert_eq!(graph(&[("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]), [["a", "b", "c"].map(module)]);
        assert_eq!(graph(&[("", "a"), ("a", "")]), Vec::<Vec<Module>>::new(), "the root is left out");
    }
}
