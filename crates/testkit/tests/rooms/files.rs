//! Which files of a crate need which.
//!
//! A file needs another if code of it that is not for tests names something that the other defines: by
//! a `use`, or by a path in an expression, a type, a pattern or a macro's arguments. Re-exports
//! (`pub use`) are followed to the file that defines it and are no need of their own: a module may
//! list what its submodules offer. Neither is a `mod`, nor what is named within one file, nor what a
//! submodule names of a module that contains it: those two are one thing in several files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, Macro, Meta, UseTree, Visibility};

/// The names that lead from the crate's root to a module.
type Module = Vec<String>;

/// A module's part of a file.
#[derive(Default)]
struct Part {
    file: String,
    /// What its `use`s bring in, by name, `pub` or not; each with its path.
    uses: BTreeMap<String, Vec<String>>,
    /// Paths that end in `*`.
    globs: Vec<Vec<String>>,
    /// What it defines itself.
    items: BTreeSet<String>,
    /// All paths that are named in it.
    paths: Vec<Vec<String>>,
}

/// The modules of a crate.
#[derive(Default)]
struct Crate(BTreeMap<Module, Part>);

/// The files under `folder`, the `src` of a crate, each with those that it needs.
pub fn arrows(folder: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut all = Crate::default();
    let root = ["lib.rs", "main.rs"].into_iter().find(|name| folder.join(name).exists());
    all.read(folder, root.expect("a library or a program"), Vec::new());
    let mut arrows = BTreeMap::<String, BTreeSet<String>>::new();
    for (module, part) in &all.0 {
        let above =
            |file: &str| (0..=module.len()).any(|length| all.0[&module[..length]].file == file);
        let to = part.paths.iter().filter_map(|path| all.file(module, path, 0));
        let to = to.filter(|to| !above(to)).map(String::from);
        arrows.entry(part.file.clone()).or_default().extend(to);
    }
    arrows
}

impl Crate {
    /// Reads a file, and those of its submodules.
    fn read(&mut self, folder: &Path, file: &str, module: Module) {
        let text = std::fs::read_to_string(folder.join(file))
            .unwrap_or_else(|error| panic!("{file}: {error}"));
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        self.items(folder, file, module, &parsed.items);
    }

    fn items(&mut self, folder: &Path, file: &str, module: Module, items: &[Item]) {
        let mut part = Part { file: file.into(), ..Part::default() };
        for item in items {
            part.define(item);
            part.visit_item(item);
        }
        self.0.insert(module.clone(), part);
        for item in items {
            let Item::Mod(ItemMod { attrs, ident, content, .. }) = item else { continue };
            if attrs.iter().any(for_tests) {
                continue;
            }
            let inner = [&module[..], &[ident.to_string()]].concat();
            match content {
                Some((_, items)) => self.items(folder, file, inner, items),
                None => {
                    let path = inner.join("/");
                    let files = [format!("{path}.rs"), format!("{path}/mod.rs")];
                    let there = files.iter().find(|file| folder.join(file).exists());
                    let there = there.unwrap_or_else(|| panic!("{file}: no file of mod {ident}"));
                    self.read(folder, there, inner);
                }
            }
        }
    }

    /// The file that defines what `path` names in `module`; none of other crates and for modules.
    fn file(&self, module: &Module, path: &[String], depth: usize) -> Option<&str> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.item(&Vec::new(), rest, depth),
            "self" => self.item(module, rest, depth),
            "super" => {
                let (_, parent) = module.split_last()?;
                let parent = parent.to_vec();
                if rest.first().is_some_and(|next| next == "super") {
                    return self.file(&parent, rest, depth);
                }
                self.item(&parent, rest, depth)
            }
            _ => self.item(module, path, depth),
        }
    }

    /// The file that defines what `path` names as seen from outside of `module`.
    fn item(&self, module: &Module, path: &[String], depth: usize) -> Option<&str> {
        let part = self.0.get(module)?;
        let (first, rest) = path.split_first()?;
        let inner = [&module[..], std::slice::from_ref(first)].concat();
        if self.0.contains_key(&inner) {
            return self.item(&inner, rest, depth);
        }
        if part.items.contains(first) {
            return Some(&part.file);
        }
        if depth > 8 {
            return None;
        }
        if let Some(used) = part.uses.get(first) {
            // One of another crate may have the name that it is used by.
            let itself = used.len() == 1 && used[0] == *first;
            return if itself {
                None
            } else {
                self.file(module, &[used, rest].concat(), depth + 1)
            };
        }
        part.globs.iter().find_map(|glob| self.file(module, &[glob, path].concat(), depth + 1))
    }
}

impl Part {
    /// Notes what an item defines.
    fn define(&mut self, item: &Item) {
        let name = match item {
            Item::Const(item) => &item.ident,
            Item::Enum(item) => &item.ident,
            Item::Fn(item) => &item.sig.ident,
            Item::Static(item) => &item.ident,
            Item::Struct(item) => &item.ident,
            Item::Trait(item) => &item.ident,
            Item::Type(item) => &item.ident,
            Item::Union(item) => &item.ident,
            _ => return,
        };
        self.items.insert(name.to_string());
    }

    /// Notes what a `use` brings in.
    fn bring(&mut self, tree: &UseTree, before: &[String], public: bool) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        let (name, path) = match tree {
            UseTree::Path(path) => return self.bring(&path.tree, &with(&path.ident), public),
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.bring(tree, before, public));
            }
            UseTree::Glob(_) => return self.globs.push(before.to_vec()),
            UseTree::Name(name) if name.ident == "self" => {
                (before.last().cloned().unwrap_or_default(), before.to_vec())
            }
            UseTree::Name(name) => (name.ident.to_string(), with(&name.ident)),
            UseTree::Rename(name) => (name.rename.to_string(), with(&name.ident)),
        };
        if !public {
            self.paths.push(path.clone());
        }
        self.uses.insert(name, path);
    }

    /// Notes the paths among the tokens of a macro.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path = Vec::<String>::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => {
                    colons += 1;
                    continue;
                }
                TokenTree::Ident(ident) if colons == 2 => path.push(ident.to_string()),
                TokenTree::Ident(ident) => {
                    self.paths.push(std::mem::replace(&mut path, vec![ident.to_string()]));
                }
                TokenTree::Group(group) => {
                    self.paths.push(std::mem::take(&mut path));
                    self.tokens(group.stream());
                }
                _ => self.paths.push(std::mem::take(&mut path)),
            }
            colons = 0;
        }
        self.paths.push(path);
    }
}

/// Does an attribute leave its item out of what is built but for tests?
pub fn for_tests(attribute: &Attribute) -> bool {
    let Meta::List(list) = &attribute.meta else { return false };
    list.path.is_ident("cfg") && list.tokens.to_string().starts_with("test")
}

impl<'a> Visit<'a> for Part {
    fn visit_item(&mut self, item: &'a Item) {
        let attributes = match item {
            // A module of its own, also where it is written within this one.
            Item::Mod(_) => return,
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Struct(item) => &item.attrs,
            Item::Enum(item) => &item.attrs,
            Item::Const(item) => &item.attrs,
            Item::Static(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            _ => &Vec::new(),
        };
        if !attributes.iter().any(for_tests) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'a ItemUse) {
        self.bring(&item.tree, &[], !matches!(item.vis, Visibility::Inherited));
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        self.paths.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_visibility(&mut self, _: &'a Visibility) {}

    fn visit_macro(&mut self, of: &'a Macro) {
        self.visit_path(&of.path);
        self.tokens(of.tokens.clone());
    }
}
