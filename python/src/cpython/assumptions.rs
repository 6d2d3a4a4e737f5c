//! The undocumented properties of this interpreter that the extension relies on.

use std::sync::atomic::{AtomicU8, Ordering};

/// With the value `0`, the extension relies only on what CPython documents.
pub(crate) const VARIABLE: &str = "OFFLOCK_INTERNALS";

/// Something that CPython does not document, or does not promise for other versions.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub(crate) enum Assumption {
    /// The characters of a new `str` follow its header, as `str_header.rs` assumes.
    StrHeader = 1,
    /// A `bytes` may be cut by writing its size.
    BytesSize = 1 << 1,
    /// The items of lists and tuples are where their structs declare them.
    ItemArrays = 1 << 2,
    /// `_PyDict_NewPresized`, `_PyDict_Next` and `_PyLong_NumBits` behave as in the known versions.
    PrivateFunctions = 1 << 3,
    /// An `int` of one digit can be copied, and its copy be made immortal (`immortal_ints.rs`).
    ImmortalInts = 1 << 4,
    /// All words of a `str` can be explained (`str_layout.rs`), so that one can be written.
    StrObjects = 1 << 5,
    /// The interpreter calls pthread functions through its import slots (`plt.rs`, `gil_hooks.rs`).
    ImportSlots = 1 << 6,
}

/// One bit for each; zero until the extension is imported.
static RELIED_ON: AtomicU8 = AtomicU8::new(0);

impl Assumption {
    /// Whether the extension relies on it.
    #[inline(always)]
    pub(crate) fn holds(self) -> bool {
        RELIED_ON.load(Ordering::Relaxed) & self as u8 != 0
    }

    pub(crate) fn set(self, holds: bool) {
        if holds {
            RELIED_ON.fetch_or(self as u8, Ordering::Relaxed);
        } else {
            RELIED_ON.fetch_and(!(self as u8), Ordering::Relaxed);
        }
    }

    const ALL: [(Self, &str); 7] = [
        (Self::StrHeader, "str header"),
        (Self::BytesSize, "bytes size"),
        (Self::ItemArrays, "item arrays"),
        (Self::PrivateFunctions, "private functions"),
        (Self::ImmortalInts, "immortal ints"),
        (Self::StrObjects, "str objects"),
        (Self::ImportSlots, "import slots"),
    ];
}

/// The names of those that the extension relies on.
pub(crate) fn names_of_held() -> Vec<&'static str> {
    Assumption::ALL.iter().filter(|(assumption, _)| assumption.holds()).map(|(_, name)| *name).collect()
}

/// Whether the environment permits relying on any of them.
pub(crate) fn are_allowed() -> bool {
    std::env::var_os(VARIABLE).is_none_or(|value| value != "0")
}
