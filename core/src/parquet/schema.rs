//! The columns of a file.
//!
//! The metadata lists the tree of a file's fields from the top, each group before its members. A column is a field
//! without members. Where a field on the way to it may be missing or repeated, each of the column's values has a
//! *level* that says how much of the way is there.

use std::ops::Range;

use super::error::Fault;
use super::thrift::{Kind, Reader};
use crate::memory;

/// How deep groups may be nested.
const DEPTH: usize = 64;

/// How a column's values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// One bit.
    Boolean,
    /// So many bytes: numbers, and arrays of one length.
    Fixed(usize),
    /// Bytes, each value with its length.
    Bytes,
}

/// What a column's values mean, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// Text, or bytes of which the file does not say what they are.
    Text,
    /// Integers of 32 or 64 bits with a sign.
    Signed,
    /// Integers of 32 or 64 bits without one.
    Unsigned,
    /// Nothing: all values are missing.
    Null,
    /// Something else, which this names.
    Other(&'static str),
}

/// A column.
#[derive(Debug, Clone)]
pub struct Leaf {
    /// How its values are stored.
    pub kind: Type,
    /// What they mean.
    pub meaning: Meaning,
    /// The number of fields on the way to a value that may be missing, itself included.
    pub levels: u32,
    /// Whether a record has any number of values.
    pub is_repeated: bool,
    /// Whether it is a member of no group.
    pub is_flat: bool,
    /// The number of the type.
    pub(super) physical: i32,
    /// The field in the tree.
    field: usize,
    /// Its description in the metadata.
    description: Range<usize>,
}

/// A field of the tree.
struct Field {
    name: Range<usize>,
    parent: usize,
    leaf: Option<usize>,
}

/// What the name of a column leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// The column of this index.
    Column(usize),
    /// A group of columns.
    Group,
    /// Nothing.
    Nothing,
}

/// The columns of a file.
pub struct Schema {
    metadata: Vec<u8>,
    fields: Vec<Field>,
    leaves: Vec<Leaf>,
}

impl Schema {
    /// The schema whose list of fields stands at this place of the metadata.
    pub(super) fn read(metadata: Vec<u8>, list: Range<usize>) -> Result<Self, Fault> {
        let mut schema = Self { metadata, fields: Vec::new(), leaves: Vec::new() };
        schema.read_fields(list)?;
        Ok(schema)
    }

    fn read_fields(&mut self, list: Range<usize>) -> Result<(), Fault> {
        /// A group of which members are still to come.
        struct Open {
            field: usize,
            missing: u64,
            levels: u32,
            is_repeated: bool,
        }
        let metadata = std::mem::take(&mut self.metadata);
        let mut reader = Reader::at(&metadata, list.start);
        let (length, kind) = reader.list(Kind::List)?;
        let mut open: Vec<Open> = Vec::new();
        for index in 0..length {
            let start = reader.pos();
            let description = Description::read(&mut reader, kind)?;
            let (mut levels, mut is_repeated) =
                open.last().map_or((0, false), |open| (open.levels, open.is_repeated));
            // What the root says of itself does not matter.
            if index > 0 {
                levels += u32::from(description.repetition != 0);
                is_repeated |= description.repetition == 2;
                let parent =
                    open.last_mut().ok_or(Fault::Wrong("the schema has fields outside of its tree"))?;
                parent.missing -= 1;
            }
            let parent = open.last().map_or(0, |open| open.field);
            let leaf = match description.physical {
                Some(_) if index > 0 => Some(self.leaves.len()),
                _ => None,
            };
            memory::push(&mut self.fields, Field { name: description.name.clone(), parent, leaf })?;
            if leaf.is_some() {
                let leaf = Leaf {
                    kind: description.kind()?,
                    meaning: description.meaning(),
                    levels,
                    is_repeated,
                    is_flat: open.len() == 1 && !is_repeated,
                    physical: description.physical.unwrap_or_default() as i32,
                    field: index,
                    description: start..reader.pos(),
                };
                memory::push(&mut self.leaves, leaf)?;
            } else {
                if open.len() == DEPTH {
                    return Err(Fault::Wrong("the schema is nested too deeply"));
                }
                open.push(Open { field: index, missing: description.children, levels, is_repeated });
            }
            while open.last().is_some_and(|open| open.missing == 0) {
                open.pop();
            }
        }
        self.metadata = metadata;
        if open.is_empty() { Ok(()) } else { Err(Fault::Wrong("the schema lacks fields of a group")) }
    }

    /// The metadata of the file.
    pub(super) fn metadata(&self) -> &[u8] {
        &self.metadata
    }

    /// The columns, in their order in the file.
    pub fn columns(&self) -> &[Leaf] {
        &self.leaves
    }

    /// What the field of these keys is, from the outermost one.
    pub fn find(&self, keys: &[String]) -> Named {
        let found = (0..self.fields.len()).rev().find(|&field| self.is_named(field, keys));
        match found.map(|field| self.fields[field].leaf) {
            None => Named::Nothing,
            Some(Some(leaf)) => Named::Column(leaf),
            Some(None) => Named::Group,
        }
    }

    fn is_named(&self, mut field: usize, keys: &[String]) -> bool {
        for key in keys.iter().rev() {
            if field == 0 || self.metadata[self.fields[field].name.clone()] != *key.as_bytes() {
                return false;
            }
            field = self.fields[field].parent;
        }
        field == 0
    }

    /// The name of a column, without the groups that it is in.
    pub fn name(&self, leaf: &Leaf) -> &[u8] {
        &self.metadata[self.fields[leaf.field].name.clone()]
    }

    /// The description of a column, for a file that is written.
    pub(super) fn description(&self, leaf: &Leaf) -> &[u8] {
        &self.metadata[leaf.description.clone()]
    }
}

/// What the metadata says of a field.
#[derive(Default)]
struct Description {
    name: Range<usize>,
    physical: Option<i64>,
    length: u64,
    /// 0 for a field that is always there, 1 for one that may be missing, 2 for one that is repeated.
    repetition: i64,
    children: u64,
    converted: Option<i64>,
    /// The number of the logical type, and of a number whether it has a sign.
    logical: Option<i64>,
    is_signed: bool,
}

impl Description {
    fn read(reader: &mut Reader<'_>, kind: Kind) -> Result<Self, Fault> {
        let mut found = Self { is_signed: true, ..Self::default() };
        reader.structure(kind, |reader, number, kind| {
            match number {
                1 => found.physical = Some(reader.int(kind)?),
                2 => found.length = reader.size(kind)?,
                3 => found.repetition = reader.int(kind)?,
                4 => {
                    let length = reader.binary(kind)?.len();
                    found.name = reader.pos() - length..reader.pos();
                }
                5 => found.children = reader.size(kind)?,
                6 => found.converted = Some(reader.int(kind)?),
                10 => reader.structure(kind, |reader, number, kind| {
                    found.logical = Some(number);
                    if number != 10 {
                        return Ok(false);
                    }
                    reader.structure(kind, |_, number, kind| {
                        if number == 2 {
                            found.is_signed = kind != Kind::Bool(false);
                        }
                        Ok(false)
                    })?;
                    Ok(true)
                })?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(found)
    }

    fn kind(&self) -> Result<Type, Fault> {
        Ok(match self.physical {
            Some(0) => Type::Boolean,
            Some(1 | 4) => Type::Fixed(4),
            Some(2 | 5) => Type::Fixed(8),
            Some(3) => Type::Fixed(12),
            Some(6) => Type::Bytes,
            Some(7) if self.length > 0 && self.length <= i32::MAX as u64 => Type::Fixed(self.length as usize),
            Some(7) => return Err(Fault::Wrong("the schema has arrays without a length")),
            _ => return Err(Fault::Wrong("the schema has a column of an unknown type")),
        })
    }

    fn meaning(&self) -> Meaning {
        match (self.physical, self.logical, self.converted) {
            (_, Some(11), _) => Meaning::Null,
            (_, Some(5), _) | (_, None, Some(5)) => Meaning::Other("a decimal number"),
            (Some(6), Some(13), _) | (Some(6), None, Some(20)) => Meaning::Other("BSON"),
            (Some(6), ..) => Meaning::Text,
            (Some(1 | 2), Some(6..=8), _) | (Some(1 | 2), None, Some(6..=10)) => Meaning::Other("a time"),
            (Some(1 | 2), Some(10), _) if !self.is_signed => Meaning::Unsigned,
            (Some(1 | 2), None, Some(11..=14)) => Meaning::Unsigned,
            (Some(1 | 2), ..) => Meaning::Signed,
            (Some(0), ..) => Meaning::Other("a boolean"),
            (Some(3), ..) => Meaning::Other("a time"),
            (Some(4 | 5), ..) => Meaning::Other("a number"),
            (Some(7), ..) => Meaning::Other("an array of bytes"),
            _ => Meaning::Other("something unknown"),
        }
    }
}
