//! For methods that handle the common case and forward the others to a method in Ruby.

use magnus::value::LazyId;
use magnus::{Error, Ruby, Value};

use crate::cruby::{Id, Object, catch};

pub(super) use crate::cruby::has_keywords;

/// Calls another method of `receiver` with the arguments of the running method, keywords as keywords.
pub(super) fn forward(
    ruby: &Ruby,
    receiver: Value,
    method: &'static LazyId,
    arguments: &[Value],
) -> Result<Value, Error> {
    let method = Id::from(LazyId::get_inner_with(method, ruby));
    catch(ruby, |gvl| gvl.forward(Object::of(receiver), method, Object::all(arguments)))
}
