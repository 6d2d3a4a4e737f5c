//! Extracts one field of every record of a message, without building the records.

use magnus::{Error, RArray, RModule, RString, Ruby, TryConvert, Value, function};
use offlock_core::msgpack::extract;

use super::build::check_extra;
use super::globals::globals;
use super::view::MessageError;
use crate::borrow::{borrowed, numbers};
use crate::column;
use crate::cruby::catch;
use crate::operations::MSGPACK_EXTRACT;
use crate::region::{Region, Release};

/// Extracts the fields under `path` in every record: `extract_column(bytes, path, release)`.
fn extract(ruby: &Ruby, source: RString, path: RArray, release: Release) -> Result<Value, Error> {
    let share = borrowed!(Bytes, source);
    let bytes = share.view();
    let path = numbers(path, |_| None, |key, _| String::try_convert(key))?;
    let path: Vec<&[u8]> = path.iter().map(String::as_bytes).collect();
    let (fields, end) = Region::new(&MSGPACK_EXTRACT, bytes.len())
        .release(release)
        .run(ruby, |task| extract::fields(bytes, &path, task).map_err(MessageError))?;
    let extra = bytes.len() - end;
    catch(ruby, |gvl| {
        check_extra(extra);
        column::array(gvl, bytes, &fields).into()
    })
}

/// Defines the function that releases the lock.
pub(super) fn define_function() -> Result<(), Error> {
    let module = RModule::try_convert(globals().module.value())?;
    module.define_module_function("extract_column", function!(extract, 3))
}
