//! A writer for protocol buffers, as far as the export needs it.

use crate::trace::format::wire::{put_bytes, put_number};

/// A message under construction.
#[derive(Default)]
pub(super) struct Message(Vec<u8>);

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;

impl Message {
    fn key(&mut self, field: u32, wire_type: u32) {
        put_number(&mut self.0, u64::from(field << 3 | wire_type));
    }

    /// A number in a field of type uint32, uint64, int64 (not negative), bool or enum.
    pub(super) fn number(mut self, field: u32, number: u64) -> Self {
        self.key(field, VARINT);
        put_number(&mut self.0, number);
        self
    }

    /// A number in a field of type fixed64, or the bits of a double.
    pub(super) fn fixed(mut self, field: u32, number: u64) -> Self {
        self.key(field, FIXED64);
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    /// A text.
    pub(super) fn text(self, field: u32, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    /// A message within the message.
    pub(super) fn message(self, field: u32, message: Self) -> Self {
        self.bytes(field, &message.0)
    }

    /// Bytes.
    pub(super) fn bytes(mut self, field: u32, bytes: &[u8]) -> Self {
        self.key(field, BYTES);
        put_bytes(&mut self.0, bytes);
        self
    }

    /// Numbers and their texts: Perfetto's interned strings and names.
    pub(super) fn interned<'a>(self, field: u32, texts: impl Iterator<Item = (u64, &'a str)>) -> Self {
        const IID: u32 = 1;
        const TEXT: u32 = 2;
        texts.fold(self, |all, (iid, text)| {
            all.message(field, Self::default().number(IID, iid).text(TEXT, text))
        })
    }

    /// The message's bytes.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}
