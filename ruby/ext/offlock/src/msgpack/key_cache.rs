//! A cache of map keys that were built already, for one Ractor, or for one `Unpacker` with the option
//! `key_cache`.

use offlock_core::msgpack::ShortKey;

use crate::cruby::ractor::{Local, RactorLocal};
use crate::cruby::{Marker, Object};

/// Finds the String or Symbol of a key by its bytes. Each slot holds one key, and a new key replaces the old
/// one.
///
/// Slots have no chains, so a hostile message can only make the cache useless.
#[derive(Default)]
pub(super) struct KeyCache {
    places: Vec<Option<(ShortKey, Object)>>,
}

const BITS: u32 = 8;

impl KeyCache {
    /// The object that was built for a key, if the cache has it.
    #[inline(always)]
    pub(super) fn get(&self, key: &ShortKey) -> Option<Object> {
        match self.places.get(key.place::<BITS>())? {
            Some((known, built)) if known == key => Some(*built),
            _ => None,
        }
    }

    /// Stores the object that was built for a key.
    #[cold]
    pub(super) fn add(&mut self, key: ShortKey, built: Object) {
        if self.places.is_empty() {
            self.places.resize(1 << BITS, None);
        }
        self.places[key.place::<BITS>()] = Some((key, built));
    }

    /// Marks the cached objects.
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

/// The key cache of each Ractor.
pub(super) static KEYS: RactorLocal<RactorKeys> = RactorLocal::new();

impl RactorKeys {
    /// The cache of Strings, or that of Symbols.
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
