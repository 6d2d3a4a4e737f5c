// error[E0308]: an object of any kind where only a String has bytes.

use crate::cruby::{Gvl, Object};

fn wrong_type(gvl: &Gvl, object: Object) -> usize {
    gvl.objects.bytesize(object)
}
