//! Thrift's compact protocol, in which Parquet's metadata is written: as much of it as is needed.
//!
//! A structure is a list of fields, each with a byte of its type and the distance of its number from the last one's,
//! and ends with a zero. Integers are of variable length, signed ones in zigzag. Nothing is allocated here, whatever
//! lengths the data claims.

use super::error::Fault;

/// How deep structures may be nested.
const DEPTH: usize = 32;

/// The types that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Bool(bool),
    Byte,
    Int,
    Double,
    Binary,
    List,
    Map,
    Struct,
    Uuid,
}

impl Kind {
    fn of(code: u8) -> Result<Self, Fault> {
        Ok(match code {
            1 => Self::Bool(true),
            2 => Self::Bool(false),
            3 => Self::Byte,
            4..=6 => Self::Int,
            7 => Self::Double,
            8 => Self::Binary,
            9 | 10 => Self::List,
            11 => Self::Map,
            12 => Self::Struct,
            13 => Self::Uuid,
            _ => return Err(Fault::Wrong("the metadata has a field of an unknown type")),
        })
    }
}

/// The metadata ends within a value.
pub(super) const ENDS: Fault = Fault::Wrong("the metadata ends early");

const OTHER_TYPE: Fault = Fault::Wrong("a field of the metadata has another type than the format says");

/// Reads values one after the other.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn at(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at, depth: 0 }
    }

    /// How many bytes come before the next value.
    pub(super) fn pos(&self) -> usize {
        self.at
    }

    /// Reads again what has been read from there on.
    pub(super) fn go_back(&mut self, pos: usize) {
        self.at = pos.min(self.at);
    }

    fn byte(&mut self) -> Result<u8, Fault> {
        let byte = *self.bytes.get(self.at).ok_or(ENDS)?;
        self.at += 1;
        Ok(byte)
    }

    fn pass(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        let end = self.at.checked_add(length).ok_or(ENDS)?;
        let passed = self.bytes.get(self.at..end).ok_or(ENDS)?;
        self.at = end;
        Ok(passed)
    }

    fn varint(&mut self) -> Result<u64, Fault> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Fault::Wrong("a number of the metadata is too long"))
    }

    fn zigzag(&mut self) -> Result<i64, Fault> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// An integer of this type of at most 64 bits.
    pub(super) fn int(&mut self, kind: Kind) -> Result<i64, Fault> {
        match kind {
            Kind::Byte => Ok(i64::from(self.byte()?.cast_signed())),
            Kind::Int => self.zigzag(),
            _ => Err(OTHER_TYPE),
        }
    }

    /// An integer that is a size or a number of things.
    pub(super) fn size(&mut self, kind: Kind) -> Result<u64, Fault> {
        let value = self.int(kind)?;
        u64::try_from(value).map_err(|_| Fault::Wrong("a size in the metadata is negative"))
    }

    pub(super) fn binary(&mut self, kind: Kind) -> Result<&'a [u8], Fault> {
        if kind != Kind::Binary {
            return Err(OTHER_TYPE);
        }
        let length = usize::try_from(self.varint()?).map_err(|_| ENDS)?;
        self.pass(length)
    }

    /// The number of items of a list and their type.
    pub(super) fn list(&mut self, kind: Kind) -> Result<(usize, Kind), Fault> {
        if kind != Kind::List {
            return Err(OTHER_TYPE);
        }
        let head = self.byte()?;
        let length = match head >> 4 {
            15 => usize::try_from(self.varint()?).map_err(|_| ENDS)?,
            length => usize::from(length),
        };
        // Each item has at least a byte.
        if length > self.bytes.len() - self.at {
            return Err(ENDS);
        }
        Ok((length, Kind::of(head & 15)?))
    }

    /// Calls `field` with the number and the type of each field of a structure. It returns false if it has not read
    /// the value, which is then skipped.
    pub(super) fn structure(
        &mut self,
        kind: Kind,
        mut field: impl FnMut(&mut Self, i64, Kind) -> Result<bool, Fault>,
    ) -> Result<(), Fault> {
        if kind != Kind::Struct {
            return Err(OTHER_TYPE);
        }
        if self.depth == DEPTH {
            return Err(Fault::Wrong("the metadata is nested too deeply"));
        }
        self.depth += 1;
        let mut number = 0_i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                break;
            }
            number = match head >> 4 {
                0 => self.zigzag()?,
                distance => number.saturating_add(i64::from(distance)),
            };
            let kind = Kind::of(head & 15)?;
            if !field(self, number, kind)? {
                self.skip(kind)?;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    pub(super) fn skip(&mut self, kind: Kind) -> Result<(), Fault> {
        match kind {
            Kind::Bool(_) => Ok(()),
            Kind::Byte => self.byte().map(drop),
            Kind::Int => self.varint().map(drop),
            Kind::Double => self.pass(8).map(drop),
            Kind::Uuid => self.pass(16).map(drop),
            Kind::Binary => self.binary(kind).map(drop),
            Kind::Struct => self.structure(kind, |_, _, _| Ok(false)),
            Kind::List => {
                let (length, items) = self.list(kind)?;
                (0..length).try_for_each(|_| self.skip_item(items))
            }
            Kind::Map => {
                let length = self.varint()?;
                if length == 0 {
                    return Ok(());
                }
                let kinds = self.byte()?;
                let (keys, values) = (Kind::of(kinds >> 4)?, Kind::of(kinds & 15)?);
                (0..length).try_for_each(|_| {
                    self.skip_item(keys)?;
                    self.skip_item(values)
                })
            }
        }
    }

    /// Unlike fields, items have a byte even if they are booleans.
    fn skip_item(&mut self, kind: Kind) -> Result<(), Fault> {
        if self.depth == DEPTH {
            return Err(Fault::Wrong("the metadata is nested too deeply"));
        }
        self.depth += 1;
        match kind {
            Kind::Bool(_) => self.byte().map(drop),
            kind => self.skip(kind),
        }?;
        self.depth -= 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_and_claimed_lengths_are_bounded() {
        let deep = vec![0x1c; 1 << 20];
        assert!(matches!(Reader::at(&deep, 0).skip(Kind::Struct), Err(Fault::Wrong(_))));
        let lists = vec![0x19; 1 << 20];
        assert!(matches!(Reader::at(&lists, 0).skip(Kind::List), Err(Fault::Wrong(_))));
        assert_eq!(Reader::at(&[0xf1, 0xff, 0xff, 0xff, 0x7f, 0], 0).skip(Kind::List), Err(ENDS));
    }
}
