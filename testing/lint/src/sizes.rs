//! Sizes of the Rust code: lines of a file without its tests, lines of a function, and the [budget](crate::budget) of
//! all. What is over the limits of `testing/lint/sizes.toml` is listed there with a reason, or is a finding. Files of tests
//! have no limits.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use syn::spanned::Spanned;
use syn::visit::Visit;

use crate::budget::Budget;
use crate::{Error, Finding, source};

/// Where the limits are, from the repository's root.
pub const LIMITS: &str = "testing/lint/sizes.toml";

/// The line of that file after which the budget is, which [`write`] writes.
const BUDGET: &str = "# The budget. After lines have gone: WRITE_SIZES=1 cargo test -p heaptoll-lint sizes\n";

/// Limits in lines, and what is known to be over them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Limits {
    file: usize,
    function: usize,
    #[serde(default)]
    exception: Vec<Exception>,
    #[serde(default)]
    budget: Budget,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    path: String,
    /// The functions of this name in the file; the file itself when missing.
    #[serde(default)]
    function: Option<String>,
    /// For readers of the list only.
    reason: String,
    #[serde(skip)]
    used: bool,
}

/// Which of the measured files of these folders are over the limits of the repository at `root`, and exceptions that
/// nothing needs.
///
/// # Errors
/// The limits cannot be read.
pub fn check(root: &Path, folders: &[PathBuf], measured: &[(Sizes, PathBuf)]) -> Result<Vec<Finding>, Error> {
    let path = root.join(LIMITS);
    let text = std::fs::read_to_string(&path).map_err(Error::read(&path))?;
    let mut limits = parsed(&text).map_err(|message| Error::rules(&path, message))?;
    let tests: BTreeSet<PathBuf> = measured.iter().flat_map(|(sizes, _)| sizes.tests.clone()).collect();
    let mut findings = Vec::new();
    let mut code = Vec::new();
    for (sizes, file) in measured.iter().filter(|(_, file)| !is_of(&tests, file)) {
        findings.extend(limits.broken_by(&file.to_string_lossy(), sizes));
        code.push((file.as_path(), sizes.code));
    }
    findings.extend(limits.unused(folders));
    if folders.is_empty() {
        if std::env::var_os("WRITE_SIZES").is_some() {
            write(&path, &text, &limits.budget.lowered(code.iter().copied()))?;
        }
        let finding = |text| Finding { path: LIMITS.to_string(), line: 0, text };
        findings.extend(limits.budget.broken_by(code).into_iter().map(finding));
    }
    Ok(findings)
}

/// Writes the budget into the file of limits, whose text is as yet this.
fn write(path: &Path, text: &str, budget: &Budget) -> Result<(), Error> {
    let limits = text.split_once(BUDGET).map_or(text, |(limits, _)| limits);
    let budget = toml::to_string_pretty(&std::collections::BTreeMap::from([("budget", budget)]));
    let budget = budget.map_err(|error| Error::rules(path, error))?;
    std::fs::write(path, format!("{limits}{BUDGET}{budget}")).map_err(Error::read(path))
}

fn parsed(text: &str) -> Result<Limits, String> {
    let limits: Limits = toml::from_str(text).map_err(|e| e.to_string())?;
    match limits.exception.iter().find(|one| one.reason.is_empty()) {
        Some(one) => Err(format!("{} is an exception without a reason", one.label())),
        None => limits.budget.fault().map_or(Ok(limits), Err),
    }
}

/// Whether a file is one of the modules `tests`, or of a module in one of them; without `.rs`.
fn is_of(tests: &BTreeSet<PathBuf>, file: &Path) -> bool {
    file.with_extension("").ancestors().any(|module| tests.contains(module))
}

impl Limits {
    fn broken_by(&mut self, path: &str, sizes: &Sizes) -> Vec<Finding> {
        let mut findings = Vec::new();
        if sizes.lines > self.file && !self.except(path, None) {
            let text = format!(
                "{} lines without tests, over the limit of {}: make it files of one noun each",
                sizes.lines, self.file
            );
            findings.push(Finding { path: path.to_string(), line: 0, text });
        }
        let limit = self.function;
        for function in sizes.functions.iter().filter(|function| function.lines > limit) {
            if !self.except(path, Some(&function.name)) {
                let text = format!(
                    "`{}` has {} lines, over the limit of {limit}: split it",
                    function.name, function.lines
                );
                findings.push(Finding { path: path.to_string(), line: function.first, text });
            }
        }
        findings
    }

    fn except(&mut self, path: &str, function: Option<&str>) -> bool {
        let fits =
            self.exception.iter_mut().find(|one| one.path == path && one.function.as_deref() == function);
        fits.map(|one| one.used = true).is_some()
    }

    fn unused(&self, folders: &[PathBuf]) -> impl Iterator<Item = Finding> {
        let is_checked = |one: &&Exception| source::is_within(Path::new(&one.path), folders);
        self.exception.iter().filter(is_checked).filter(|one| !one.used).map(|one| Finding {
            path: LIMITS.to_string(),
            line: 0,
            text: format!("{} keeps the limits: remove the exception", one.label()),
        })
    }
}

impl Exception {
    fn label(&self) -> String {
        match &self.function {
            Some(function) => format!("`{function}` in {}", self.path),
            None => self.path.clone(),
        }
    }
}

/// What the limits are held against.
#[derive(Default)]
pub struct Sizes {
    /// Lines of the file without its tests.
    lines: usize,
    /// Of these, without blank lines and comments.
    code: usize,
    functions: Vec<Function>,
    /// Modules for tests in files of their own, without `.rs`, from the repository's root.
    tests: Vec<PathBuf>,
}

#[derive(Debug, PartialEq, Eq)]
struct Function {
    name: String,
    first: usize,
    lines: usize,
}

/// The sizes of a file and of the functions in it.
pub fn measure(file: &Path, text: &str, syntax: &syn::File) -> Sizes {
    let folder = file.parent().unwrap_or(Path::new("")).to_path_buf();
    let modules = match file.file_stem().and_then(|stem| stem.to_str()) {
        Some("lib" | "main" | "mod") | None => folder.clone(),
        Some(stem) => folder.join(stem),
    };
    let mut visitor =
        Items { folder, modules, lines: text.lines().map(Some).collect(), sizes: Sizes::default() };
    visitor.visit_file(syntax);
    let Items { lines, mut sizes, .. } = visitor;
    sizes.lines = lines.iter().flatten().count();
    let is_code = |line: &&&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
    sizes.code = lines.iter().flatten().filter(is_code).count();
    sizes
}

struct Items<'a> {
    /// The file's folder, from which `#[path]` is.
    folder: PathBuf,
    /// Where the modules of the file are.
    modules: PathBuf,
    /// Lines of the file; none where a test is.
    lines: Vec<Option<&'a str>>,
    sizes: Sizes,
}

impl Items<'_> {
    fn leave_out(&mut self, item: &syn::Item) {
        let span = item.span();
        let lines = self.lines.get_mut(span.start().line - 1..span.end().line);
        lines.unwrap_or_default().fill(None);
        if let syn::Item::Mod(module) = item
            && module.content.is_none()
        {
            let written = module.attrs.iter().find_map(written_path);
            let path = match written {
                Some(path) => self.folder.join(path).with_extension(""),
                None => self.modules.join(module.ident.to_string()),
            };
            self.sizes.tests.push(path);
        }
    }

    fn add(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let first = signature.span().start().line;
        let lines = body.span().end().line - first + 1;
        self.sizes.functions.push(Function { name: signature.ident.to_string(), first, lines });
    }
}

impl<'ast> Visit<'ast> for Items<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if source::attributes(item).iter().any(source::is_for_tests_only) {
            self.leave_out(item);
        } else {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.sig, &item.block);
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.sig, &item.block);
        syn::visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.add(&item.sig, body);
        }
        syn::visit::visit_trait_item_fn(self, item);
    }
}

/// `#[path = "..."]`.
fn written_path(attribute: &syn::Attribute) -> Option<String> {
    match &attribute.meta {
        syn::Meta::NameValue(syn::MetaNameValue {
            path,
            value: syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }),
            ..
        }) if path.is_ident("path") => Some(text.value()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(file: &str, text: &str) -> Sizes {
        measure(Path::new(file), text, &syn::parse_file(text).expect("it parses"))
    }

    fn sizes(text: &str) -> Sizes {
        of("x/src/a.rs", text)
    }

    fn broken(limits: &str, text: &str) -> Vec<String> {
        let mut limits = parsed(limits).expect("the limits are valid");
        let mut findings = limits.broken_by("x/src/a.rs", &sizes(text));
        findings.extend(limits.unused(&[]));
        findings.iter().map(ToString::to_string).collect()
    }

    const LONG: &str = "struct S;\nimpl S {\n    fn f() {\n        g();\n    }\n}\n";

    #[test]
    fn a_file_is_measured_without_its_tests() {
        assert_eq!(sizes(LONG).lines, 6);
        let text = "fn f() {}\n\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n#[cfg(test)]\nuse x::y;\n";
        assert_eq!((sizes(text).lines, sizes(text).code), (2, 1));
        let commented = "//! About.\n\n/// A function.\nfn f() {\n    // Nothing.\n}\n";
        assert_eq!((sizes(commented).lines, sizes(commented).code), (6, 2));
        assert_eq!(sizes(text).functions.len(), 1, "functions of tests have no limit");
        assert_eq!(sizes("#[cfg(any(test, feature = \"made\"))]\nmod made {\n}\n").lines, 3);
    }

    #[test]
    fn every_kind_of_function_is_measured_from_its_signature() {
        let text = "/// About.\n#[inline]\npub fn f() {\n    fn g() {}\n}\ntrait T {\n    fn h();\n    fn i() {}\n}\n";
        let found: Vec<_> = sizes(text).functions.into_iter().map(|f| (f.name, f.first, f.lines)).collect();
        let wanted = [("f", 3, 3), ("g", 4, 1), ("i", 8, 1)].map(|(name, at, n)| (name.to_string(), at, n));
        assert_eq!(found, wanted);
        assert_eq!(sizes(LONG).functions.first().map(|f| (f.first, f.lines)), Some((3, 3)));
    }

    #[test]
    fn modules_for_tests_in_files_of_their_own_have_no_limits() {
        let declared = "#[cfg(test)]\nmod tests;\nmod other;\n";
        assert_eq!(of("x/src/a.rs", declared).tests, [Path::new("x/src/a/tests")]);
        assert_eq!(of("x/src/lib.rs", declared).tests, [Path::new("x/src/tests")]);
        let elsewhere = "#[cfg(test)]\n#[path = \"a_tests.rs\"]\nmod tests;\n";
        assert_eq!(of("x/src/a.rs", elsewhere).tests, [Path::new("x/src/a_tests")]);
        let tests = BTreeSet::from([PathBuf::from("x/src/a/tests")]);
        assert!(
            is_of(&tests, Path::new("x/src/a/tests.rs")) && is_of(&tests, Path::new("x/src/a/tests/b.rs"))
        );
        assert!(!is_of(&tests, Path::new("x/src/a.rs")) && !is_of(&tests, Path::new("x/src/a/tests_b.rs")));
    }

    #[test]
    fn what_is_at_a_limit_keeps_it() {
        assert_eq!(broken("file = 6\nfunction = 3", LONG), [""; 0]);
        let found = broken("file = 5\nfunction = 2", LONG);
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with("x/src/a.rs: 6 lines without tests"), "{found:?}");
        assert!(found[1].starts_with("x/src/a.rs:3: `f` has 3 lines"), "{found:?}");
    }

    const EXCEPTIONS: &str = r#"
        exception = [
            { path = "x/src/a.rs", reason = "to be split" },
            { path = "x/src/a.rs", function = "f", reason = "one table" },
        ]
    "#;

    #[test]
    fn an_exception_covers_its_file_or_its_function_only() {
        assert_eq!(broken(&format!("file = 5\nfunction = 2{EXCEPTIONS}"), LONG), [""; 0]);
        let found = broken(&format!("file = 5\nfunction = 2{EXCEPTIONS}").replace("\"f\"", "\"g\""), LONG);
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn an_exception_that_nothing_needs_is_a_finding() {
        let found = broken(&format!("file = 6\nfunction = 2{EXCEPTIONS}"), LONG);
        assert_eq!(found, ["testing/lint/sizes.toml: x/src/a.rs keeps the limits: remove the exception"]);
        let found = broken(&format!("file = 5\nfunction = 3{EXCEPTIONS}"), LONG);
        assert_eq!(
            found,
            ["testing/lint/sizes.toml: `f` in x/src/a.rs keeps the limits: remove the exception"]
        );
    }

    #[test]
    fn an_exception_without_a_reason_is_refused() {
        let text = format!("file = 5\nfunction = 2{EXCEPTIONS}").replace("one table", "");
        assert!(parsed(&text).is_err_and(|message| message.contains("without a reason")));
    }
}
