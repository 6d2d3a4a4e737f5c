//! Reads JSON with an eye on the task and on memory: a vocabulary of 30 MB takes some tenths of a second, and
//! a file may be made to need much more memory than its size.

use super::invalid;
use crate::Task;
use crate::memory::{self, OutOfMemory};
use crate::tokens::Error;
use serde::de::{DeserializeOwned, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt;
use std::io::{self, BufReader, Read};
use std::marker::PhantomData;

/// The bytes between two checks of the task.
const STRETCH: usize = 16 << 10;

struct Checked<'a> {
    bytes: &'a [u8],
    task: &'a Task<'a>,
}

impl Read for Checked<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.task.check().map_err(io::Error::other)?;
        self.bytes.read(buffer)
    }
}

/// The value that `json` describes.
pub(super) fn read<T: DeserializeOwned>(json: &[u8], task: &Task<'_>) -> Result<T, Error> {
    let bytes = json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(json);
    let reader = BufReader::with_capacity(STRETCH, Checked { bytes, task });
    serde_json::from_reader(reader).map_err(|error| match task.check() {
        Err(stopped) => stopped.into(),
        Ok(()) => invalid(format!("the file is not a tokenizer's: {error}")),
    })
}

/// What collects the items of a list in the file.
pub(super) trait Collect: Default {
    type Item: DeserializeOwned;

    fn add(&mut self, item: Self::Item) -> Result<(), OutOfMemory>;
}

impl<T: DeserializeOwned> Collect for Vec<T> {
    type Item = T;

    fn add(&mut self, item: T) -> Result<(), OutOfMemory> {
        memory::push(self, item)
    }
}

/// The items of a list. If memory runs out, what was collected is dropped at once, so that there is some for
/// the rest of the file.
pub(super) struct Collected<C>(pub(super) Result<C, OutOfMemory>);

impl<C: Collect> Collected<C> {
    pub(super) fn add(&mut self, item: C::Item) {
        if let Ok(items) = &mut self.0
            && items.add(item).is_err()
        {
            self.0 = Err(OutOfMemory);
        }
    }
}

impl<C: Default> Default for Collected<C> {
    fn default() -> Self {
        Self(Ok(C::default()))
    }
}

impl<'de, C: Collect> Deserialize<'de> for Collected<C> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<C>(PhantomData<C>);
        impl<'de, C: Collect> Visitor<'de> for Reader<C> {
            type Value = Collected<C>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Collected::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let mut collected = Collected::default();
                while let Some(item) = items.next_element()? {
                    collected.add(item);
                }
                Ok(collected)
            }
        }
        deserializer.deserialize_any(Reader(PhantomData))
    }
}

/// A part of the file besides its lists. These are small, and in memory take up to a hundred times their size.
#[derive(Default)]
pub(super) struct Setting(pub(super) Value);

/// The longest such part in bytes.
const LONGEST_SETTING: usize = 1 << 20;

impl<'de> Deserialize<'de> for Setting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        if text.get().len() > LONGEST_SETTING {
            return Err(serde::de::Error::custom("a part besides the vocabulary is longer than 1 MB"));
        }
        serde_json::from_str(text.get()).map(Self).map_err(serde::de::Error::custom)
    }
}
