//! Writes Thrift's compact protocol; `thrift.rs` describes and reads it.

/// Writes structures.
#[derive(Default)]
pub(super) struct Writer {
    pub(super) bytes: Vec<u8>,
    /// The numbers of the last fields of the structures that are open.
    last: Vec<u8>,
}

impl Writer {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn zigzag(&mut self, value: i64) {
        self.varint(((value << 1) ^ (value >> 63)).cast_unsigned());
    }

    fn field(&mut self, number: u8, code: u8) {
        let last = self.last.last_mut().map_or(0, |last| std::mem::replace(last, number));
        self.bytes.push((number - last) << 4 | code);
    }

    pub(super) fn bool(&mut self, number: u8, value: bool) {
        self.field(number, if value { 1 } else { 2 });
    }

    pub(super) fn byte(&mut self, number: u8, value: u8) {
        self.field(number, 3);
        self.bytes.push(value);
    }

    pub(super) fn i32(&mut self, number: u8, value: i32) {
        self.field(number, 5);
        self.zigzag(value.into());
    }

    pub(super) fn i64(&mut self, number: u8, value: i64) {
        self.field(number, 6);
        self.zigzag(value);
    }

    pub(super) fn text(&mut self, number: u8, text: &[u8]) {
        self.field(number, 8);
        self.text_item(text);
    }

    pub(super) fn text_item(&mut self, text: &[u8]) {
        self.varint(text.len() as u64);
        self.bytes.extend_from_slice(text);
    }

    pub(super) fn i32_item(&mut self, value: i32) {
        self.zigzag(value.into());
    }

    /// Begins a list of so many structures; each is written by [`item`](Self::item).
    pub(super) fn list(&mut self, number: u8, length: usize) {
        self.list_of(number, length, 12);
    }

    /// Begins a list of integers.
    pub(super) fn list_of_i32(&mut self, number: u8, length: usize) {
        self.list_of(number, length, 5);
    }

    /// Begins a list of texts.
    pub(super) fn list_of_texts(&mut self, number: u8, length: usize) {
        self.list_of(number, length, 8);
    }

    fn list_of(&mut self, number: u8, length: usize, code: u8) {
        self.field(number, 9);
        if length < 15 {
            self.bytes.push((length as u8) << 4 | code);
        } else {
            self.bytes.push(0xf0 | code);
            self.varint(length as u64);
        }
    }

    /// Writes a field that is a structure.
    pub(super) fn structure(&mut self, number: u8, fields: impl FnOnce(&mut Self)) {
        self.field(number, 12);
        self.item(fields);
    }

    /// Writes a structure that is no field.
    pub(super) fn item(&mut self, fields: impl FnOnce(&mut Self)) {
        self.last.push(0);
        fields(self);
        self.last.pop();
        self.bytes.push(0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::thrift::{ENDS, Kind, Reader};
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut writer = Writer::default();
        writer.item(|writer| {
            writer.i32(1, -3);
            writer.bool(2, true);
            writer.structure(4, |writer| writer.i64(1, i64::MIN));
            writer.list(5, 20);
            (0..20).for_each(|number| writer.item(|writer| writer.i32(1, number)));
            writer.byte(7, 32);
            writer.text(9, b"text");
        });
        let mut reader = Reader::at(&writer.bytes, 0);
        let mut found = Vec::new();
        let read = reader.structure(Kind::Struct, |reader, number, kind| {
            match number {
                1 | 7 => found.push(reader.int(kind)?.to_string()),
                9 => found.push(String::from_utf8_lossy(reader.binary(kind)?).into_owned()),
                2 => found.push(format!("{kind:?}")),
                _ => return Ok(false),
            }
            Ok(true)
        });
        assert_eq!((read, reader.pos()), (Ok(()), writer.bytes.len()));
        assert_eq!(found, ["-3", "Bool(true)", "32", "text"]);
        for end in 0..writer.bytes.len() {
            let read = Reader::at(&writer.bytes[..end], 0).skip(Kind::Struct);
            assert_eq!(read, Err(ENDS), "{end}");
        }
    }
}
