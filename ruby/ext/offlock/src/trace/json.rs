//! Reads JSON into Ruby's objects. Ruby's own library for it cannot be loaded in a trap handler: `require` locks a Mutex.

use std::fmt;

use magnus::value::ReprValue;
use magnus::{Error, IntoValue, Ruby, Value};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

/// The objects of a JSON text, with Symbols as keys.
pub(super) fn parsed(ruby: &Ruby, json: String) -> Result<Value, Error> {
    let read = serde_json::from_str::<Parsed>(&json);
    read.map(|parsed| parsed.0).map_err(|error| Error::new(ruby.exception_arg_error(), error.to_string()))
}

struct Parsed(Value);

impl<'de> Deserialize<'de> for Parsed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // `parsed` is called by Ruby.
        let ruby = Ruby::get().map_err(D::Error::custom)?;
        deserializer.deserialize_any(Maker(ruby)).map(Self)
    }
}

/// Makes the object for each value of the text.
struct Maker(Ruby);

impl<'de> Visitor<'de> for Maker {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(self.0.qnil().as_value())
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into_value_with(&self.0))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into_value_with(&self.0))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into_value_with(&self.0))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into_value_with(&self.0))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into_value_with(&self.0))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let array = self.0.ary_new();
        while let Some(Parsed(item)) = items.next_element()? {
            array.push(item).map_err(A::Error::custom)?;
        }
        Ok(array.as_value())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let hash = self.0.hash_new();
        while let Some(key) = entries.next_key::<String>()? {
            let Parsed(value) = entries.next_value()?;
            hash.aset(self.0.to_symbol(key), value).map_err(A::Error::custom)?;
        }
        Ok(hash.as_value())
    }
}
