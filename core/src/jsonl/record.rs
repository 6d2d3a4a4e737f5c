//! Finds the wanted values of one record.

use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;

use super::paths::{Node, Paths};
use super::value::{ARRAY, BOOLEAN, NULL, NUMBER, STRING, kind};

/// What a record has where a path leads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    /// Nothing, or null.
    #[default]
    Missing,
    /// A value, as it is written in the record.
    Value(&'a str),
    /// Before the end of the path something that is not an object; holds its kind.
    NoObject(&'static str),
}

/// Finds what the paths lead to in `record`, one JSON value. `found` has an item for each path.
pub(crate) fn find<'a>(
    record: &'a str,
    paths: &Paths,
    found: &mut [Found<'a>],
) -> Result<(), serde_json::Error> {
    let mut parser = serde_json::Deserializer::from_str(record);
    At { node: &paths.root, found }.deserialize(&mut parser)?;
    parser.end()
}

/// The value at a node.
struct At<'n, 'f, 'a> {
    node: &'n Node,
    found: &'f mut [Found<'a>],
}

impl<'a> DeserializeSeed<'a> for At<'_, '_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, value: D) -> Result<(), D::Error> {
        let Self { node, found } = self;
        // Of equal keys only the last one counts.
        node.each(&mut |path| found[path] = Found::Missing);
        let keys = &node.keys[..];
        if node.paths.is_empty() {
            return value.deserialize_any(Below { keys, found });
        }
        let value = <&RawValue>::deserialize(value)?.get();
        if kind(value) != NULL {
            node.paths.iter().for_each(|&path| found[path] = Found::Value(value));
        }
        if keys.is_empty() {
            return Ok(());
        }
        serde_json::Deserializer::from_str(value)
            .deserialize_any(Below { keys, found })
            .map_err(Error::custom)
    }
}

/// A value of which what is below some keys is wanted.
struct Below<'n, 'f, 'a> {
    keys: &'n [(String, Node)],
    found: &'f mut [Found<'a>],
}

impl Below<'_, '_, '_> {
    fn no_object<E>(self, kind: &'static str) -> Result<(), E> {
        for (_, node) in self.keys {
            node.each(&mut |path| self.found[path] = Found::NoObject(kind));
        }
        Ok(())
    }
}

impl<'a> Visitor<'a> for Below<'_, '_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        self.no_object(STRING)
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        self.no_object(BOOLEAN)
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        self.no_object(NUMBER)
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        self.no_object(NUMBER)
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        self.no_object(NUMBER)
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        self.no_object(ARRAY)
    }

    fn visit_map<A: MapAccess<'a>>(self, mut entries: A) -> Result<(), A::Error> {
        while let Some(node) = entries.next_key_seed(Among(self.keys))? {
            match node {
                Some(node) => entries.next_value_seed(At { node, found: &mut *self.found })?,
                None => drop(entries.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// Looks for a key among the wanted ones.
struct Among<'n>(&'n [(String, Node)]);

impl<'n, 'a> DeserializeSeed<'a> for Among<'n> {
    type Value = Option<&'n Node>;

    fn deserialize<D: Deserializer<'a>>(self, key: D) -> Result<Option<&'n Node>, D::Error> {
        key.deserialize_str(self)
    }
}

impl<'n> Visitor<'_> for Among<'n> {
    type Value = Option<&'n Node>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Option<&'n Node>, E> {
        Ok(self.0.iter().find(|(wanted, _)| wanted == key).map(|(_, node)| node))
    }
}
