//! The texts that make a scenario (its file, the bases of that, and what `--set` changes) as one TOML
//! tree, in which each value still knows the file and line, or the option, that it comes from.

use std::collections::BTreeMap;
use std::ops::Range;

use indexmap::IndexMap;
use narrows_laws::catalogue::hint;
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::file::File;
use super::origin::Origin;
use crate::Error;

/// Fields of each file alone, not inherited from a base.
const OWN: [&str; 5] = ["base", "name", "title", "source", "paper"];

/// The texts of a scenario.
pub struct Document {
    /// The file itself, then its base, the base of that and so on.
    files: Vec<(Origin, Text)>,
    /// What `--set` changes, in order.
    sets: Vec<(Set, Text)>,
}

/// A `--set FIELD=VALUE`.
struct Set {
    field: String,
    value: String,
}

/// A piece of TOML behind as many spaces as there are bytes of text before it: so the spans that its
/// parser gives count from the beginning of all texts, and a position says which text it is in.
struct Text {
    start: usize,
    padded: String,
}

impl Text {
    fn new(start: usize, text: &str) -> Text {
        Text { start, padded: " ".repeat(start) + text }
    }

    fn span(&self) -> Range<usize> {
        // At the end is a place of its own, for what is missing there.
        self.start..self.padded.len() + 1
    }

    fn line(&self, position: usize) -> usize {
        let before = &self.padded.as_bytes()[..position.min(self.padded.len())];
        1 + before.iter().filter(|&&byte| byte == b'\n').count()
    }
}

impl Document {
    /// The text of `origin` and those of its bases.
    ///
    /// # Errors
    /// A text that is no TOML; a base that is missing or leads back to a file before it.
    pub fn read(origin: Origin, text: &str) -> Result<Document, Error> {
        let mut document = Document { files: vec![(origin, Text::new(0, text))], sets: Vec::new() };
        while let Some((origin, text)) = document.next_base()? {
            let text = Text::new(document.end(), &text);
            document.files.push((origin, text));
        }
        Ok(document)
    }

    /// The texts that [`Self::texts`] gave.
    pub fn of(texts: &[(Origin, String)]) -> Document {
        let mut document = Document { files: Vec::new(), sets: Vec::new() };
        for (origin, text) in texts {
            let text = Text::new(document.end(), text);
            document.files.push((origin.clone(), text));
        }
        document
    }

    /// The texts of the file and its bases, with where each comes from.
    pub fn texts(self) -> Vec<(Origin, String)> {
        let files = self.files.into_iter();
        files.map(|(origin, text)| (origin, text.padded[text.start..].to_owned())).collect()
    }

    /// The base of the last file, if it has one.
    fn next_base(&self) -> Result<Option<(Origin, String)>, Error> {
        let Some((origin, text)) = self.files.last() else { return Ok(None) };
        let Some(base) = self.parse(&text.padded)?.into_inner().remove("base") else {
            return Ok(None);
        };
        let wrong = |message: String| {
            Error::input(self.place(base.span().start), format!("base: {message}"))
        };
        let Some(name) = base.get_ref().as_str() else {
            let message = "expected a shipped scenario such as \"sbd/sb-2\", or a .toml file";
            return Err(wrong(message.into()));
        };
        let found = origin.base(name);
        if self.files.iter().any(|(known, _)| known.same(&found)) {
            return Err(wrong(format!("\"{name}\" leads back to {}", found.place())));
        }
        let text = found.text().map_err(|error| wrong(error.to_string()))?;
        Ok(Some((found, text)))
    }

    /// Adds a change of the command line.
    pub fn set(&mut self, field: &str, value: &str) {
        let text = Text::new(self.end(), &format!("value = {value}"));
        self.sets.push((Set { field: field.to_owned(), value: value.to_owned() }, text));
    }

    /// Where the next text begins.
    fn end(&self) -> usize {
        let last = self.sets.last().map(|(_, text)| text);
        last.or(self.files.last().map(|(_, text)| text)).map_or(0, |text| text.span().end)
    }

    /// What the texts say together.
    ///
    /// # Errors
    /// The first thing that no scenario has, with its place.
    pub fn file(&self) -> Result<File, Error> {
        let mut tree = self.tree()?;
        let params = self.params(tree.get_mut())?;
        if !tree.get_ref().contains_key("name") {
            let message = "missing field `name`; a file without it is a base, not a scenario";
            return Err(Error::input(self.files[0].0.place(), message));
        }
        let deserializer = toml::Deserializer::from(tree);
        let file = serde_path_to_error::deserialize(deserializer).map_err(|error| {
            let field = error.path().to_string();
            let message = toml_words(error.inner().message());
            let of_file = !field.contains('.') || field == ".";
            let message = match of_file && message.starts_with("unknown field") {
                // Laws and detectors bring tables of their own.
                true => with_hint(&message, &narrows_laws::params::groups()),
                false => with_hint(&message, &[]),
            };
            let position = error.inner().span().map_or(0, |span| span.start);
            // Of a table that does not fit together, a change in it is the cause.
            let within = |set: &Set| set.field.starts_with(&format!("{field}."));
            let caused =
                |(set, text): &&(Set, Text)| text.span().contains(&position) || within(set);
            match self.sets.iter().find(caused) {
                Some((set, _)) => set.error(message),
                // At the top of the file there is no field to speak of.
                None if field == "." => Error::input(self.place(position), message),
                None => Error::input(self.place(position), format!("{field}: {message}")),
            }
        })?;
        Ok(File { params, ..file })
    }

    /// The parameters that changes of the command line alone set, by field, all of which were read
    /// before.
    pub fn params_of_sets(
        settings: &BTreeMap<String, String>,
    ) -> Result<IndexMap<String, toml::Table>, Error> {
        let mut document = Document::read(Origin::Memory, "")?;
        let groups = narrows_laws::params::groups();
        for (field, value) in settings {
            if groups.contains(&field.split('.').next().unwrap_or_default()) {
                document.set(field, value);
            }
        }
        let mut tree = document.tree()?;
        document.params(tree.get_mut())
    }

    /// Takes the tables of parameters out of the tree: laws and detectors say which there are.
    fn params(&self, tree: &mut DeTable) -> Result<IndexMap<String, toml::Table>, Error> {
        let mut params = IndexMap::new();
        for group in narrows_laws::params::groups() {
            let Some(fields) = tree.remove(group) else { continue };
            let position = fields.span().start;
            let fields = toml::de::ValueDeserializer::from(fields);
            let fields = toml::Table::deserialize(fields).map_err(|error| {
                let message = toml_words(error.message());
                Error::input(self.place(position), format!("{group}: {message}"))
            })?;
            params.insert(group.to_owned(), fields);
        }
        Ok(params)
    }

    /// An error of `field`, given by the keys that lead to it.
    pub fn error(&self, field: &[String], message: &str) -> Error {
        // A change of the field, or inside or around it.
        let touches = |set: &Set| field.iter().zip(set.field.split('.')).all(|(a, b)| a == b);
        match self.sets.iter().find(|(set, _)| touches(set)) {
            Some((set, _)) => set.error(message),
            None => {
                let place = match self.tree().ok().and_then(|tree| position(tree, field)) {
                    Some(position) => self.place(position),
                    None => self.files[0].0.place(),
                };
                Error::input(place, format!("{}: {message}", field.join(".")))
            }
        }
    }

    /// The texts as one tree: tables of a base and of what builds on it are merged key by key, of all
    /// other values the last one stands.
    fn tree(&self) -> Result<Spanned<DeTable<'_>>, Error> {
        let mut tree = DeTable::new();
        for (index, (origin, text)) in self.files.iter().enumerate().rev() {
            let mut table = self.parse(&text.padded)?.into_inner();
            self.find_traces(origin, &mut table)?;
            for own in if index == 0 { &OWN[..1] } else { &OWN } {
                table.remove(*own);
            }
            tree = merge(tree, table);
        }
        let mut root = Spanned::new(0..0, DeValue::Table(tree));
        for (set, text) in &self.sets {
            *set.place(&mut root, text).map_err(|message| set.error(message))? = set.value(text);
        }
        match root.into_inner() {
            DeValue::Table(tree) => Ok(Spanned::new(0..0, tree)),
            _ => unreachable!("a field has a name, so the root stays a table"),
        }
    }

    fn parse<'a>(&self, text: &'a str) -> Result<Spanned<DeTable<'a>>, Error> {
        DeTable::parse(text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            let message = match error.message() {
                "duplicate key" => format!("duplicate key {}", &text[span.clone()]),
                message => message.to_owned(),
            };
            Error::input(self.place(span.start), message)
        })
    }

    /// Replaces the traces that the links in `table` name by what they are wherever the scenario ends
    /// up: paths from the current folder, or names of shipped ones.
    fn find_traces(&self, origin: &Origin, table: &mut DeTable) -> Result<(), Error> {
        let Some(DeValue::Table(links)) = table.get_mut("links").map(Spanned::get_mut) else {
            return Ok(());
        };
        for (name, link) in links.iter_mut() {
            for field in ["trace", "jitter.trace.file"] {
                let Some(trace) = at_mut(link, field) else { continue };
                let position = trace.span().start;
                if let DeValue::String(file) = trace.get_mut() {
                    *file = origin
                        .trace(file)
                        .map_err(|message| {
                            let field = format!("links.{}.{field}", name.get_ref());
                            Error::input(self.place(position), format!("{field}: {message}"))
                        })?
                        .into();
                }
            }
        }
        Ok(())
    }

    /// File and line of a position.
    fn place(&self, position: usize) -> String {
        let found = self.files.iter().find(|(_, text)| text.span().contains(&position));
        match found {
            Some((origin, text)) => format!("{}:{}", origin.place(), text.line(position)),
            None => self.files[0].0.place(),
        }
    }
}

/// The value of a field such as `jitter.trace.file` below a table.
fn at_mut<'a, 'b>(
    from: &'a mut Spanned<DeValue<'b>>,
    field: &str,
) -> Option<&'a mut Spanned<DeValue<'b>>> {
    field.split('.').try_fold(from, |value, name| match value.get_mut() {
        DeValue::Table(table) => table.get_mut(name),
        _ => None,
    })
}

impl Set {
    fn error(&self, message: impl ToString) -> Error {
        Error::input(format!("--set {}={}", self.field, self.value), message)
    }

    /// The value: TOML if it reads as TOML, a string otherwise, so that `rate=10 Mbit/s` needs no second
    /// pair of quotes.
    fn value<'a>(&'a self, text: &'a Text) -> Spanned<DeValue<'a>> {
        let table = DeTable::parse(&text.padded).ok();
        match table.and_then(|table| table.into_inner().remove("value")) {
            Some(value) => value,
            None => Spanned::new(text.span(), DeValue::String(self.value.as_str().into())),
        }
    }

    /// The place of the field in `root`, where numbers index arrays. Tables on the way that are missing
    /// are made; the reading refuses unknown names.
    fn place<'t, 'a>(
        &'a self,
        root: &'t mut Spanned<DeValue<'a>>,
        text: &Text,
    ) -> Result<&'t mut Spanned<DeValue<'a>>, String> {
        let mut at = root;
        for key in self.field.split('.') {
            if key.is_empty() {
                return Err("expected a field such as links.bottleneck1.rate".into());
            }
            at = match at.get_mut() {
                DeValue::Table(table) => {
                    let empty = || Spanned::new(text.span(), DeValue::Table(DeTable::new()));
                    table.entry(Spanned::new(text.span(), key.into())).or_insert_with(empty)
                }
                DeValue::Array(array) => {
                    let length = array.len();
                    let index = key.parse().ok().filter(|&index: &usize| index < length);
                    let wrong = || format!("expected an index below {length}, found {key}");
                    &mut (**array)[index.ok_or_else(wrong)?]
                }
                _ => return Err(format!("unknown field {key}")),
            };
        }
        Ok(at)
    }
}

/// The fields of `over`, and those of `base` that `over` does not have.
fn merge<'a>(base: DeTable<'a>, mut over: DeTable<'a>) -> DeTable<'a> {
    let mut merged = DeTable::new();
    for (key, value) in base {
        let Some((key, replaced)) = over.remove_entry(key.get_ref().as_ref()) else {
            merged.insert(key, value);
            continue;
        };
        let span = replaced.span();
        let value = match (value.into_inner(), replaced.into_inner()) {
            (DeValue::Table(base), DeValue::Table(over)) => DeValue::Table(merge(base, over)),
            (_, replaced) => replaced,
        };
        merged.insert(key, Spanned::new(span, value));
    }
    merged.extend(over);
    merged
}

/// Where a field begins: the innermost key on the way to it that exists.
fn position(tree: Spanned<DeTable>, field: &[String]) -> Option<usize> {
    let mut value = DeValue::Table(tree.into_inner());
    let mut start = None;
    for key in field {
        value = match value {
            DeValue::Table(mut table) => {
                let Some((found, inner)) = table.remove_entry(key.as_str()) else { break };
                start = Some(found.span().start);
                inner.into_inner()
            }
            DeValue::Array(array) => {
                let Some(item) = key.parse().ok().and_then(|i| array.into_iter().nth(i)) else {
                    break;
                };
                start = Some(item.span().start);
                item.into_inner()
            }
            _ => break,
        };
    }
    start
}

/// A message of serde on an unknown field or word with the one that was probably meant; `more` are known
/// besides those it lists.
fn with_hint(message: &str, more: &[&str]) -> String {
    let Some((unknown, expected)) = message.split_once(", expected ") else {
        return message.into();
    };
    let quoted = |text: &'_ str| -> Vec<String> {
        text.split('`').skip(1).step_by(2).map(String::from).collect()
    };
    let (Some(name), true) = (quoted(unknown).pop(), unknown.starts_with("unknown ")) else {
        return message.into();
    };
    let listed = quoted(expected);
    let known: Vec<&str> = listed.iter().map(String::as_str).chain(more.iter().copied()).collect();
    let more: String = more.iter().map(|name| format!(", `{name}`")).collect();
    format!("{unknown}{}, expected {expected}{more}", hint(&name, &known))
}

/// Serde's message in TOML's terms.
fn toml_words(message: &str) -> String {
    let mut words: Vec<&str> = message.split(' ').collect();
    // "expected struct Link" names a type of this program.
    if let Some(index) = words.iter().position(|&word| word == "struct") {
        words.splice(index..(index + 2).min(words.len()), ["a", "table"]);
    }
    // "unknown variant `x`" is of a word in quotes, as most fields have.
    if words.starts_with(&["unknown", "variant"]) {
        words[1] = "word";
    }
    let word = |word: &&str| {
        let plain = word.trim_end_matches(',');
        let ours = match plain {
            "map" => "table",
            "sequence" => "list",
            "usize" | "u8" | "u16" | "u32" | "u64" => "a whole number, not negative",
            "f64" => "a number",
            _ => plain,
        };
        format!("{ours}{}", &word[plain.len()..])
    };
    let message = words.iter().map(word).collect::<Vec<String>>().join(" ");
    message.replace("an array of length", "a list of length")
}
