//! Map keys that were built already, kept by one Ractor, or by one `Unpacker` with the option `key_cache`.

use offlock_core::msgpack::ShortKey;

use crate::cruby::ractor::{Local, RactorLocal};
use crate::cruby::{Marker, Object};

/// Remembers the String or Symbol of a key by its bytes: one key in each place, the newest one wins.
///
/// There is no chain to walk, so a hostile message only makes it useless.
#[derive(Default)]
pub(super) struct KeyCache {
    places: Vec<Option<(ShortKey, Object)>>,
}

const BITS: u32 = 8;

impl KeyCache {
    /// What was built of a key that was met before.
    #[inline(always)]
    pub(super) fn get(&self, key: &ShortKey) -> Option<Object> {
        match self.places.get(key.place::<BITS>())? {
            Some((known, built)) if known == key => Some(*built),
            _ => None,
        }
    }

    /// Remembers what was built of a key.
    #[cold]
    pub(super) fn add(&mut self, key: ShortKey, built: Object) {
        if self.places.is_empty() {
            self.places.resize(1 << BITS, None);
        }
        self.places[key.place::<BITS>()] = Some((key, built));
    }

    /// Shows what is remembered to the garbage collector.
    pub(super) fn mark(&self, marker: &Marker) {
        self.places.iter().flatten().for_each(|&(_, built)| marker.mark(built));
    }

    pub(super) fn size(&self) -> usize {
        self.places.capacity() * size_of::<Option<(ShortKey, Object)>>()
    }
}

/// The keys of one Ractor.
#[derive(Default)]
pub(super) struct RactorKeys {
    strings: KeyCache,
    symbols: KeyCache,
}

/// The keys of each Ractor.
pub(super) static KEYS: RactorLocal<RactorKeys> = RactorLocal::new();

impl RactorKeys {
    /// The Strings, or Symbols.
    #[inline(always)]
    pub(super) fn of_kind(&mut self, symbols: bool) -> &mut KeyCache {
        if symbols { &mut self.symbols } else { &mut self.strings }
    }
}

impl Local for RactorKeys {
    fn mark(&self, marker: &Marker) {
        self.strings.mark(marker);
        self.symbols.mark(marker);
    }
}
