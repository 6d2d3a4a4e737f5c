//! Walking through a Hash.

use std::ffi::{CStr, c_int};
use std::sync::OnceLock;

use rb_sys::*;

use super::call::raise;
use super::gvl::{Gvl, Locked};
use super::object::{Array, Hash, Id, Kind, Object, classes};

/// Calls `visit` with each entry of a Hash until it says that this is enough.
///
/// Meanwhile the Hash cannot get new keys, which must not concern other code: `visit` is to run none, and to let no other
/// thread run.
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
        // SAFETY: the address that is passed below, of what outlives the call.
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

/// Up to so many entries are copied to the stack.
const FEW: usize = 32;

/// The last entries of a Hash as they were once, for when the Hash may have become another one.
pub(crate) struct Entries {
    few: [(Object, Object); FEW],
    /// The keys and the values of the whole Hash, where there are more than a few entries.
    all: Option<(Array, Array)>,
    /// Where the entries begin, and end.
    from: usize,
    to: usize,
}

impl Entries {
    /// The last `count` entries of a Hash, without running Ruby code or another thread.
    ///
    /// An entry that is walked to costs ten times as much as one that Ruby copies with all others at once.
    pub(crate) fn last(gvl: &mut Gvl, hash: Hash, count: usize) -> Self {
        let length = gvl.objects.hash_len(hash);
        let mut entries = Self { few: [(Object::NIL, Object::NIL); FEW], all: None, from: 0, to: count };
        if count > FEW {
            (entries.from, entries.to) = (length.saturating_sub(count), length);
            entries.all = Some((column(gvl, hash, &KEYS, c"keys"), column(gvl, hash, &VALUES, c"values")));
            return entries;
        }
        let mut skip = length.saturating_sub(count);
        let mut found = 0;
        for_each_entry(gvl, hash, |_, key, value| {
            if skip > 0 {
                skip -= 1;
            } else if let Some(place) = entries.few.get_mut(found) {
                *place = (key, value);
                found += 1;
            }
            true
        });
        entries.to = found;
        entries
    }

    /// How many there are.
    pub(crate) const fn len(&self) -> usize {
        self.to - self.from
    }

    /// Calls `visit` with each entry, until it says that this is enough. Whether it never did.
    pub(crate) fn for_each<C: Locked>(
        &self,
        context: &mut C,
        mut visit: impl FnMut(&mut C, Object, Object) -> bool,
    ) -> bool {
        let goes_on = (self.from..self.to).all(|index| {
            let (key, value) = match self.all {
                Some((keys, values)) => {
                    let objects = &context.gvl().objects;
                    (objects.item(keys, index), objects.item(values, index))
                }
                None => self.few[index],
            };
            visit(context, key, value)
        });
        // The garbage collector finds the entries here.
        std::hint::black_box(self);
        goes_on
    }
}

/// `Hash#keys` and `Hash#values`, as they are when the extension is loaded.
static KEYS: OnceLock<Object> = OnceLock::new();
static VALUES: OnceLock<Object> = OnceLock::new();

/// Remembers methods of Hash.
pub(crate) fn prepare(gvl: &mut Gvl) {
    for (method, name) in [(&KEYS, c"keys"), (&VALUES, c"values")] {
        let name = Id::of(name).symbol();
        let found = gvl.call(classes::hash(), Id::of(c"instance_method"), &[name]);
        // SAFETY: a live object, which lives for ever from here on.
        unsafe { rb_gc_register_mark_object(found.as_raw()) };
        method.get_or_init(|| found);
    }
}

/// The keys, or values, of a Hash, in an Array that no program finds.
fn column(gvl: &mut Gvl, hash: Hash, method: &OnceLock<Object>, name: &CStr) -> Array {
    let column = match method.get() {
        Some(&method) => gvl.call(method, Id::of(c"bind_call"), &[hash.into()]),
        None => gvl.call(hash.into(), Id::of(name), &[]),
    };
    let Kind::Array(array) = gvl.objects.kind(column) else {
        raise(classes::type_error(), format_args!("the Hash has no {name:?}"))
    };
    // SAFETY: an Array that was just made.
    unsafe { rb_obj_hide(column.as_raw()) };
    array
}
