//! What a file says on the terminal by itself.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Expr, ExprCall, ExprMethodCall, ExprPath, Item, Macro};

use super::files::for_tests;

/// Of the standard library.
const MACROS: [&str; 5] = ["print", "println", "eprint", "eprintln", "dbg"];
/// The same.
const STREAMS: [&str; 2] = ["stdout", "stderr"];
/// Of progress bars.
const METHODS: [&str; 4] = ["set_message", "with_message", "set_prefix", "with_prefix"];

/// Of what draws on a whole terminal.
const BACKENDS: [&str; 2] = ["CrosstermBackend", "enable_raw_mode"];

/// What code that is not for tests writes to standard output or error with, or lets a progress bar show.
///
/// # Errors
/// It is no Rust.
pub fn by(text: &str) -> syn::Result<BTreeSet<String>> {
    let mut said = Said::default();
    said.visit_file(&syn::parse_file(text)?);
    Ok(said.0)
}

#[derive(Default)]
struct Said(BTreeSet<String>);

impl Said {
    fn stream(&mut self, name: Option<String>) {
        self.0
            .extend(name.filter(|name| STREAMS.contains(&&**name)).map(|name| format!("{name}()")));
    }

    /// The arguments of a macro: their grammar is its own.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut before = String::new();
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            let next = tokens.peek().map(TokenTree::to_string).unwrap_or_default();
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(name) => {
                    let name = name.to_string();
                    if before != "." && next.starts_with('(') && STREAMS.contains(&&*name) {
                        self.0.insert(format!("{name}()"));
                    }
                    if before == "." && METHODS.contains(&&*name) {
                        self.0.insert(format!(".{name}"));
                    }
                    if next == "!" && MACROS.contains(&&*name) {
                        self.0.insert(format!("{name}!"));
                    }
                    before.clear();
                }
                other => before = other.to_string(),
            }
        }
    }
}

impl<'ast> Visit<'ast> for Said {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Mod(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !attributes.iter().any(|one| for_tests(one) || one.path().is_ident("test")) {
            visit::visit_item(self, item);
        }
    }

    fn visit_macro(&mut self, of: &'ast Macro) {
        let name = of.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
        if MACROS.contains(&&*name) {
            self.0.insert(format!("{name}!"));
        }
        self.tokens(of.tokens.clone());
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let name = call.method.to_string();
        if METHODS.contains(&&*name) {
            self.0.insert(format!(".{name}"));
        }
        match &*call.receiver {
            Expr::Call(ExprCall { .. }) if name == "is_terminal" => {}
            _ => visit::visit_expr_method_call(self, call),
        }
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let Expr::Path(ExprPath { path, .. }) = &*call.func {
            self.stream(path.segments.iter().map(|one| one.ident.to_string()).next_back());
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        let names = path.path.segments.iter().map(|one| one.ident.to_string());
        self.0.extend(names.filter(|name| BACKENDS.contains(&&**name)));
        // One segment alone is a variable.
        let segments = path.path.segments.iter().skip(1);
        self.stream(segments.map(|one| one.ident.to_string()).next_back());
    }
}
