//! The proof that a thread holds the interpreter lock.

use std::marker::PhantomData;

/// Proves that the calling thread holds the interpreter lock.
///
/// Mutably borrowed, it is also the permission to run Ruby code and to let other threads run, which may change anything. So
/// nothing that is borrowed from it can be held meanwhile.
pub(crate) struct Gvl {
    /// What Ruby's own objects hold.
    pub(crate) objects: Objects,
    /// What objects of our classes hold.
    pub(crate) natives: Natives,
}

/// The permission to read Ruby's own objects.
pub(crate) struct Objects(PhantomData<*mut ()>);

/// The permission to read, or mutably borrowed to change, what objects of our classes hold.
pub(crate) struct Natives(PhantomData<*mut ()>);

/// What has the lock.
pub(crate) trait Locked {
    /// The lock.
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
    /// The calling thread holds the lock for as long as the value lives, and nothing is borrowed from another one.
    #[inline(always)]
    pub(super) const unsafe fn held() -> Self {
        Self { objects: Objects(PhantomData), natives: Natives(PhantomData) }
    }
}
