//! The proof that a thread holds the interpreter lock.

use std::marker::PhantomData;

/// Proves that the calling thread holds the interpreter lock.
///
/// Mutably borrowed, it is also the permission to run Ruby code and to let other threads run, which may
/// change any object. So no reference that is borrowed from it can be held in the meantime.
pub(crate) struct Gvl {
    /// The permission for Ruby's own objects.
    pub(crate) objects: Objects,
    /// The permission for the native data of our objects.
    pub(crate) natives: Natives,
}

/// The permission to read Ruby's own objects.
pub(crate) struct Objects(PhantomData<*mut ()>);

/// The permission to read, or mutably borrowed to change, the native data of our objects.
pub(crate) struct Natives(PhantomData<*mut ()>);

/// A value that contains the proof of the lock.
pub(crate) trait Locked {
    /// The proof.
    fn gvl(&mut self) -> &mut Gvl;
}

impl Locked for Gvl {
    #[inline(always)]
    fn gvl(&mut self) -> &mut Gvl {
        self
    }
}

impl Gvl {
    /// # Safety
    /// The calling thread holds the lock for as long as the value lives, and nothing is borrowed from another
    /// proof.
    #[inline(always)]
    pub(super) const unsafe fn held() -> Self {
        Self { objects: Objects(PhantomData), natives: Natives(PhantomData) }
    }
}
