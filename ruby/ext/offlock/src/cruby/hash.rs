//! Iterates over a Hash.

use std::ffi::{c_int, c_long};
use std::ptr;

use rb_sys::*;

use super::gvl::{Gvl, Locked};
use super::object::{Hash, Object};

/// Calls `visit` with each entry of a Hash until it returns false.
///
/// `visit` must not run Ruby code or let another thread run, because these could not add keys to the Hash in
/// the meantime.
pub(crate) fn for_each_entry<C: Locked>(
    context: &mut C,
    hash: Hash,
    visit: impl FnMut(&mut C, Object, Object) -> bool,
) {
    struct Walk<'a, C, F>(&'a mut C, F);

    unsafe extern "C" fn entry<C, F: FnMut(&mut C, Object, Object) -> bool>(
        key: VALUE,
        value: VALUE,
        walk: VALUE,
    ) -> c_int {
        // SAFETY: the address that is passed below, of a value that outlives the call.
        let Walk(context, visit) = unsafe { &mut *(walk as *mut Walk<'_, C, F>) };
        let goes_on = visit(context, Object::raw(key), Object::raw(value));
        (if goes_on { st_retval::ST_CONTINUE } else { st_retval::ST_STOP }) as c_int
    }

    fn function<C, F: FnMut(&mut C, Object, Object) -> bool>(
        _: &Walk<'_, C, F>,
    ) -> unsafe extern "C" fn(VALUE, VALUE, VALUE) -> c_int {
        entry::<C, F>
    }

    let mut walk = Walk(context, visit);
    let function = function(&walk);
    // SAFETY: a Hash, and a function that gets the address of `walk`, which outlives the call.
    unsafe { rb_hash_foreach(Object::from(hash).as_raw(), Some(function), (&raw mut walk) as VALUE) };
}

/// Up to this many entries are copied to the stack.
const FEW: usize = 32;

type Entry = (Object, Object);

/// The last entries of a Hash as they were at one time, for code during which the Hash may change.
pub(crate) struct Entries {
    few: [Entry; FEW],
    /// Memory for more entries, in which the garbage collector looks for objects, and the object that keeps
    /// the memory.
    many: *mut Entry,
    keeper: VALUE,
    count: usize,
}

impl Entries {
    /// Copies the last `count` entries of a Hash without running Ruby code or another thread.
    pub(crate) fn last(gvl: &mut Gvl, hash: Hash, count: usize) -> Self {
        let few = [(Object::NIL, Object::NIL); FEW];
        let mut entries = Self { few, many: ptr::null_mut(), keeper: Qnil as VALUE, count: 0 };
        if count > FEW {
            let size = count * size_of::<Entry>();
            // SAFETY: allocates, or raises. The object that keeps the memory is on the stack as long as the
            // entries are.
            entries.many = unsafe { rb_alloc_tmp_buffer(&raw mut entries.keeper, size as c_long) }.cast();
        }
        let mut skip = gvl.objects.hash_len(hash).saturating_sub(count);
        for_each_entry(gvl, hash, |_, key, value| {
            if skip > 0 {
                skip -= 1;
            } else if entries.count < count {
                // SAFETY: there is capacity for `count` entries: on the stack up to `FEW`, or in the memory.
                unsafe { entries.first().add(entries.count).write((key, value)) };
                entries.count += 1;
            }
            true
        });
        entries
    }

    fn first(&mut self) -> *mut Entry {
        if self.many.is_null() { self.few.as_mut_ptr() } else { self.many }
    }

    /// The number of entries.
    pub(crate) const fn len(&self) -> usize {
        self.count
    }

    /// Calls `visit` with each entry until it returns false. Returns whether it was true for all of them.
    pub(crate) fn for_each<C: Locked>(
        mut self,
        context: &mut C,
        mut visit: impl FnMut(&mut C, Object, Object) -> bool,
    ) -> bool {
        let first = self.first();
        let goes_on = (0..self.count).all(|index| {
            // SAFETY: `index` is less than the number of copied entries.
            let (key, value) = unsafe { *first.add(index) };
            visit(context, key, value)
        });
        // The garbage collector finds the entries here.
        std::hint::black_box(&self);
        if !self.many.is_null() {
            // SAFETY: the memory that was allocated above, freed once.
            unsafe { rb_free_tmp_buffer(&raw mut self.keeper) };
        }
        goes_on
    }
}
