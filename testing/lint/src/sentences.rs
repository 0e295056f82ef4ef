//! Sentences that a user reads: literals of the tool's crates that reach a document, a message or a help text have at
//! most 25 words each, and none of five turns that a reader has to decipher. A literal that has to break the rule has
//! `// Sentence: why` in the line above it. There is no list of banned words: one bent the prose before.

use std::path::Path;
use std::sync::LazyLock;

use proc_macro2::{TokenStream, TokenTree};
use regex::Regex;
use syn::visit::Visit;

use crate::{Finding, source};

/// Crates of the tool and of the laboratory have their own folders below these.
const FOLDERS: [&str; 2] = ["crates", "lab"];
/// What only developers or programs read.
const NOT_FOR_USERS: [&str; 4] =
    ["crates/catalog/src/generate", "crates/scratch", "lab/originals", "crates/reftrace-host"];
/// The most words of a sentence.
const WORDS: usize = 25;
/// Fewer words than this are a name or a heading, in which no turn is looked for.
const SENTENCE: usize = 3;
/// Marks a literal that has to break the rule.
const REASON: &str = "// Sentence: ";
/// What stops a program that is wrong; no user should read it.
const ASSERTIONS: [&str; 8] = [
    "assert",
    "assert_eq",
    "assert_ne",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "panic",
    "unreachable",
];
static TURNS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        r"\b(?:is|are|was|were)(?: not)? seen\b",
        r"\b(?:in company|company of|at once)\b",
        r"\b(?:of|by|in|over) which\b",
        r"\b(?:that|those) of\b",
        r"\b(?:as far as|so (?:many|long|often|much)|it is no|is none of)\b",
    ]
    .into_iter()
    .filter_map(|turn| Regex::new(turn).ok())
    .collect()
});

/// Sentences in a file of the tool's crates that break the rule.
pub fn check(file: &Path, text: &str, syntax: &syn::File) -> Vec<Finding> {
    if !is_checked(file) {
        return Vec::new();
    }
    let path = file.to_string_lossy();
    let finding = |(line, text)| Finding { path: path.to_string(), line, text };
    faults(text, syntax).into_iter().map(finding).collect()
}

fn is_checked(file: &Path) -> bool {
    let is_source = file.iter().nth(2).is_some_and(|part| part == "src");
    let is_test = file.iter().any(|part| part == "tests.rs" || part == "testing.rs");
    let is_in = |folders: &[&str]| folders.iter().any(|folder| file.starts_with(folder));
    let is_ours = is_in(&FOLDERS) && !is_in(&NOT_FOR_USERS);
    is_ours && is_source && !is_test
}

/// The lines (from 1) of literals that break the rule, and what is wrong.
fn faults(text: &str, syntax: &syn::File) -> Vec<(usize, String)> {
    let mut literals = Literals::default();
    literals.visit_file(syntax);
    let lines: Vec<&str> = text.lines().collect();
    let is_excused = |line: usize| {
        line.checked_sub(2)
            .and_then(|above| lines.get(above))
            .is_some_and(|above| above.trim_start().starts_with(REASON))
    };
    let broken = literals.found.into_iter().filter(|(line, _)| !is_excused(*line));
    broken.filter_map(|(line, text)| Some((line, fault(&text)?))).collect()
}

/// What is wrong with a text that a user reads.
fn fault(text: &str) -> Option<String> {
    sentences(text).into_iter().find_map(|sentence| {
        let words = sentence.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count();
        if words < SENTENCE {
            return None;
        }
        if words > WORDS {
            return Some(format!("{words} words, more than {WORDS}: `{sentence}`"));
        }
        let turn = TURNS.iter().find_map(|turn| turn.find(sentence))?;
        Some(format!("`{}` in `{sentence}`", turn.as_str()))
    })
}

/// A text's sentences: they end at a full stop, question mark or semicolon before a space, and at the end of a line.
fn sentences(text: &str) -> Vec<&str> {
    static END: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[.?!;]\)?\s+|\n|: *\n").ok());
    END.as_ref().map_or_else(Vec::new, |end| end.split(text).map(str::trim).collect())
}

/// Literals outside tests and assertions, and the doc comments that clap makes help of, each with its line.
#[derive(Default)]
struct Literals {
    found: Vec<(usize, String)>,
    /// Whether the doc comments of what is visited are help.
    is_help: bool,
}

impl Literals {
    fn add_tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.add_tokens(group.stream()),
                TokenTree::Literal(literal) => {
                    if let Ok(text) = syn::parse_str::<syn::LitStr>(&literal.to_string()) {
                        self.found.push((literal.span().start().line, text.value()));
                    }
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) => {}
            }
        }
    }

    /// The paragraphs of a doc comment, a line each.
    fn add_help(&mut self, attributes: &[syn::Attribute]) {
        let mut help = String::new();
        let mut first = 0;
        for (line, text) in attributes.iter().filter_map(doc_line) {
            if help.is_empty() {
                first = line;
            }
            help.push_str(if text.trim().is_empty() { "\n" } else { text.as_str() });
        }
        if self.is_help {
            self.found.push((first, help));
        }
    }
}

impl<'ast> Visit<'ast> for Literals {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = source::attributes(item);
        if attributes.iter().any(source::is_for_tests_only) {
            return;
        }
        let outer = std::mem::replace(&mut self.is_help, attributes.iter().any(is_of_clap));
        self.add_help(attributes);
        syn::visit::visit_item(self, item);
        self.is_help = outer;
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        self.add_help(&field.attrs);
        syn::visit::visit_field(self, field);
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        self.add_help(&variant.attrs);
        syn::visit::visit_variant(self, variant);
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        let shown = ["error", "arg", "command", "value"];
        if let syn::Meta::List(list) = &attribute.meta
            && shown.iter().any(|name| list.path.is_ident(name))
        {
            self.add_tokens(list.tokens.clone());
        }
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        if !ASSERTIONS.iter().any(|name| called.path.is_ident(name)) {
            self.add_tokens(called.tokens.clone());
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if call.method == "expect" {
            self.visit_expr(&call.receiver);
        } else {
            syn::visit::visit_expr_method_call(self, call);
        }
    }

    fn visit_lit_str(&mut self, literal: &'ast syn::LitStr) {
        self.found.push((literal.span().start().line, literal.value()));
    }
}

/// A line of a doc comment, with its number.
fn doc_line(attribute: &syn::Attribute) -> Option<(usize, String)> {
    let syn::Meta::NameValue(pair) = &attribute.meta else { return None };
    let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &pair.value else { return None };
    pair.path.is_ident("doc").then(|| (text.span().start().line, text.value()))
}

/// Whether an item derives what makes its doc comments help.
fn is_of_clap(attribute: &syn::Attribute) -> bool {
    let syn::Meta::List(list) = &attribute.meta else { return false };
    let derived = list.tokens.to_string();
    let makes_help = ["Args", "Parser", "Subcommand", "ValueEnum"];
    list.path.is_ident("derive") && makes_help.iter().any(|name| derived.contains(name))
        || list.path.is_ident("cfg_attr") && derived.contains("clap")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        let syntax = syn::parse_file(text).expect("it parses");
        faults(text, &syntax).into_iter().map(|(line, _)| line).collect()
    }

    /// A sentence of this length that breaks no other rule.
    fn of_words(count: usize) -> String {
        vec!["word"; count].join(" ")
    }

    #[test]
    fn a_sentence_has_at_most_25_words_wherever_it_ends() {
        let longest = of_words(WORDS);
        assert_eq!(fault(&longest), None);
        assert_eq!(fault(&format!("{longest}. {longest}; {longest}\n{longest}")), None);
        assert!(fault(&format!("{longest}, word")).is_some());
        assert!(fault(&format!("Short. {longest} word")).is_some());
    }

    #[test]
    fn each_turn_is_found() {
        for turn in [
            "no difference is not seen",
            "they run at once",
            "a page, of which half is free",
            "larger than that of glibc",
            "true as far as known",
        ] {
            assert!(fault(turn).is_some(), "{turn}");
        }
        assert_eq!(fault("I see which of them runs"), None);
    }

    #[test]
    fn texts_of_code_errors_and_help_are_read_and_those_of_tests_and_assertions_are_not() {
        let bad = "as far as it goes";
        assert_eq!(lines(&format!("fn f() {{\n    g(\"{bad}\");\n    format!(\"{bad}\");\n}}")), [2, 3]);
        assert_eq!(lines(&format!("#[derive(Error)]\nenum E {{\n    #[error(\"{bad}\")]\n    A,\n}}")), [3]);
        assert_eq!(
            lines(&format!(
                "#[derive(clap::Args)]\nstruct A {{\n    /// It goes\n    /// {bad}.\n    a: u8,\n}}"
            )),
            [3]
        );
        assert_eq!(lines(&format!("struct A {{\n    /// {bad}.\n    a: u8,\n}}")), [0; 0]);
        assert_eq!(lines(&format!("fn f() {{ assert!(x, \"{bad}\"); y.expect(\"{bad}\"); }}")), [0; 0]);
        assert_eq!(lines(&format!("#[cfg(test)]\nmod tests {{ fn f() {{ g(\"{bad}\"); }} }}")), [0; 0]);
    }

    #[test]
    fn a_literal_with_a_reason_may_break_the_rule() {
        let text = "fn f() {\n    // Sentence: a quotation of the paper.\n    g(\"as far as it goes\");\n    g(\"as far as it goes\");\n}";
        assert_eq!(lines(text), [4]);
    }
}
