// error[E0499]: the native data of an object of ours while other threads run, which may change it.

use crate::cruby::{Data, Gvl, Handle};

fn held_inside<T: Data>(gvl: &mut Gvl, handle: Handle<T>) -> usize {
    let inside = handle.get_mut(&mut gvl.natives);
    gvl.yield_between_calls();
    inside.size()
}
