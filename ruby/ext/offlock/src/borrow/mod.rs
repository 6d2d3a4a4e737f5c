//! Borrows Ruby Strings: views that stay valid and unchanged while other threads run.
//!
//! A view is made of a frozen share of the String (`rb_str_new_frozen`): the bytes are shared copy-on-write,
//! so a large String is not copied, and a thread that changes the original in the meantime gets its own copy.
//! A String whose bytes another thread may write to in place (`IO::Buffer.for`, a read into it) is copied.
//!
//! The share lies on the stack, where the garbage collector finds it and neither frees nor moves it; in a
//! `Vec` or a `Box` it would be collected. So only the macro [`borrowed!`] makes one. It returns a reference
//! to a local value without a name, which cannot be moved.
//!
//! ```ignore
//! let text = borrowed!(Text, ruby, text);     // &Text
//! let bytes = borrowed!(Bytes, string);       // &Bytes
//! ```

pub(crate) mod in_place;
mod numbers;
mod strings;

pub(crate) use in_place::define;
pub(crate) use numbers::numbers;
pub(crate) use strings::{
    AllBytes, Bytes, Kept, OnStack, Share, Text, TextError, TextView, Texts, all_checked, borrowed,
    check_utf8,
};
