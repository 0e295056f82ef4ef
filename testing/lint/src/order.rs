//! The order of modules: a source folder of `testing/lint/order.toml` lists its modules from the top down, and each uses only
//! those below it. A type whose methods are spread over modules would hide uses: a call of one of its methods is a use of
//! the module that has the method.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use syn::visit::Visit;

use crate::modules::{self, Module};
use crate::{Error, Finding, source};

/// Where the orders are, from the repository's root.
pub const ORDERS: &str = "testing/lint/order.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Orders {
    order: Vec<Order>,
}

/// The modules of a source folder.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    folder: PathBuf,
    /// The type whose methods are spread over modules, and the name that expressions of it end with.
    spread: String,
    variable: String,
    /// From the top down.
    modules: Vec<String>,
}

/// A module's source.
struct Source {
    path: PathBuf,
    syntax: syn::File,
}

/// Uses of a module by one that is not above it, and modules that are missing from an order or from its folder.
///
/// # Errors
/// A file cannot be read or parsed.
pub fn check(root: &Path) -> Result<Vec<Finding>, Error> {
    let path = root.join(ORDERS);
    let text = std::fs::read_to_string(&path).map_err(Error::read(&path))?;
    let orders: Orders = toml::from_str(&text).map_err(|e| Error::rules(&path, e))?;
    let mut findings = Vec::new();
    for order in &orders.order {
        let mut sources = BTreeMap::new();
        for file in source::files(root)? {
            let Some((folder, module)) = modules::place(&file) else { continue };
            if folder == order.folder && !module.is_empty() {
                let (_, syntax) = source::parsed(root, &file)?;
                sources.insert(module, Source { path: file, syntax });
            }
        }
        findings.extend(against(order, &uses(order, &sources), &sources));
    }
    Ok(findings)
}

/// What each module uses, by paths and by methods of the type that is spread.
fn uses(order: &Order, sources: &BTreeMap<Module, Source>) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut homes: BTreeMap<String, Module> = BTreeMap::new();
    for (module, source) in sources {
        let mut methods = Methods { order, spread: false, defined: Vec::new(), called: BTreeSet::new() };
        methods.visit_file(&source.syntax);
        homes.extend(methods.defined.into_iter().map(|name| (name, module.clone())));
    }
    let mut uses = BTreeMap::new();
    for (module, source) in sources {
        let mut used = modules::used(module, &source.syntax, sources.keys().collect());
        let mut methods = Methods { order, spread: false, defined: Vec::new(), called: BTreeSet::new() };
        methods.visit_file(&source.syntax);
        used.extend(methods.called.iter().filter_map(|name| homes.get(name).cloned()));
        used.remove(module);
        uses.insert(module.clone(), used);
    }
    uses
}

/// The methods of the type that is spread: those that a file defines, and those that it calls.
struct Methods<'a> {
    order: &'a Order,
    /// What is visited is an `impl` of the type.
    spread: bool,
    defined: Vec<String>,
    called: BTreeSet<String>,
}

impl Methods<'_> {
    /// Whether an expression is of the type: `self` in its methods, or what ends with the variable's name.
    fn is_spread(&self, receiver: &syn::Expr) -> bool {
        match receiver {
            syn::Expr::Path(path) => path
                .path
                .get_ident()
                .is_some_and(|name| *name == self.order.variable || self.spread && *name == "self"),
            syn::Expr::Field(field) => {
                matches!(&field.member, syn::Member::Named(name) if *name == self.order.variable)
            }
            syn::Expr::MethodCall(call) => call.method == self.order.variable,
            _ => false,
        }
    }
}

impl<'ast> Visit<'ast> for Methods<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !modules::for_tests(&item.attrs) {
            syn::visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        self.spread = matches!(&*item.self_ty, syn::Type::Path(path) if path.path.is_ident(&self.order.spread))
            && item.trait_.is_none();
        syn::visit::visit_item_impl(self, item);
        self.spread = false;
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if self.spread {
            self.defined.push(item.sig.ident.to_string());
        }
        syn::visit::visit_impl_item_fn(self, item);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if self.is_spread(&call.receiver) {
            self.called.insert(call.method.to_string());
        }
        syn::visit::visit_expr_method_call(self, call);
    }
}

fn against(
    order: &Order,
    uses: &BTreeMap<Module, BTreeSet<Module>>,
    sources: &BTreeMap<Module, Source>,
) -> Vec<Finding> {
    let listed: Vec<Module> =
        order.modules.iter().map(|name| name.split("::").map(ToString::to_string).collect()).collect();
    let place = |module: &Module| listed.iter().position(|one| one == module);
    let finding = |path: &Path, text: String| Finding { path: path.display().to_string(), line: 0, text };
    let mut findings = Vec::new();
    for (module, used) in uses {
        let path = sources.get(module).map_or(Path::new(ORDERS), |source| &source.path);
        let name = module.join("::");
        let Some(from) = place(module) else {
            findings.push(finding(path, format!("{name} has no place in {ORDERS}")));
            continue;
        };
        for target in used.iter().filter(|target| place(target).is_some_and(|to| to < from)) {
            findings.push(finding(path, format!("{name} uses {}, which is above it", target.join("::"))));
        }
    }
    for module in listed.iter().filter(|module| !uses.contains_key(*module)) {
        findings.push(finding(Path::new(ORDERS), format!("there is no module {}", module.join("::"))));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Findings for modules in this order, each with its text.
    fn findings(order: &[&str], files: &[(&str, &str)]) -> Vec<String> {
        let order = Order {
            folder: PathBuf::new(),
            spread: "Heap".to_string(),
            variable: "heap".to_string(),
            modules: order.iter().map(ToString::to_string).collect(),
        };
        let sources = files
            .iter()
            .map(|(name, text)| {
                let module: Module = name.split("::").map(ToString::to_string).collect();
                let syntax = syn::parse_file(text).expect("it parses");
                (module, Source { path: PathBuf::from(name), syntax })
            })
            .collect();
        let uses = uses(&order, &sources);
        against(&order, &uses, &sources).into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn a_use_goes_down_by_path_and_by_method() {
        let low = ("low", "pub struct Heap; impl Heap { fn free(&self) {} }");
        let high = ("high", "use crate::low::Heap; impl Heap { fn take(&self) { self.free() } }");
        assert_eq!(findings(&["high", "low"], &[low, high]), [""; 0]);
        assert_eq!(findings(&["low", "high"], &[low, high]), ["high uses low, which is above it"]);
    }

    #[test]
    fn a_method_that_is_called_up_is_found() {
        let low = ("low", "pub struct Heap; impl Heap { fn free(&self) { self.take() } }");
        let high = ("high", "use crate::low::Heap; impl Heap { fn take(&self) {} }");
        let by_field = ("low", "struct Heap; fn free(a: &A) { a.heap.take(); other.take() }");
        for file in [low, by_field] {
            assert_eq!(findings(&["high", "low"], &[file, high]), ["low uses high, which is above it"]);
        }
        let of_another = ("low", "struct Heap; fn free(other: &B) { other.take() }");
        assert_eq!(findings(&["high", "low"], &[of_another, high]), [""; 0]);
    }

    #[test]
    fn every_module_has_a_place_and_every_place_a_module() {
        let file = ("low", "struct Heap;");
        assert_eq!(findings(&[], &[file]), ["low has no place in testing/lint/order.toml"]);
        assert_eq!(findings(&["low", "gone"], &[file]), ["there is no module gone"]);
    }
}
