//! What the front ends know of an operation: its name, and when it releases the interpreter lock.

use std::any::Any;

/// A kind of work that can be done without the interpreter lock.
#[derive(Debug)]
pub struct Operation {
    /// The name in traces and messages, such as `tokens.encode`.
    pub name: &'static str,
    /// The size of input, in bytes, below which [`Release::Auto`] keeps the lock: releasing it would cost
    /// more time than other threads gain.
    pub break_even: usize,
}

impl Operation {
    /// Whether a run over `bytes` bytes of input releases the lock.
    #[inline]
    pub const fn is_released(&self, release: Release, bytes: usize) -> bool {
        match release {
            Release::Auto => bytes >= self.break_even,
            Release::Always => true,
            Release::Never => false,
        }
    }

    /// The message for a panic of a run over `bytes` bytes of input.
    pub fn panic_message(&self, bytes: usize, panic: &(dyn Any + Send)) -> String {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        format!("{} over {bytes} bytes panicked: {text}", self.name)
    }
}

/// The caller's choice whether an operation releases the lock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Release {
    /// If the input is large enough.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Release {
    /// The choice that is called `name`: `auto`, `always` or `never`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "auto" => Some(Self::Auto),
            "always" => Some(Self::Always),
            "never" => Some(Self::Never),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORK: Operation = Operation { name: "test.work", break_even: 100 };

    #[test]
    fn the_size_decides_unless_the_caller_does() {
        assert!(WORK.is_released(Release::Auto, 100) && !WORK.is_released(Release::Auto, 99));
        assert!(WORK.is_released(Release::Always, 0) && !WORK.is_released(Release::Never, usize::MAX));
        let named = ["auto", "always", "never", "sometimes"].map(Release::named);
        assert_eq!(named, [Some(Release::Auto), Some(Release::Always), Some(Release::Never), None]);
    }

    #[test]
    fn a_panic_is_told_with_its_message() {
        let message = |panic: Box<dyn Any + Send>| WORK.panic_message(7, panic.as_ref());
        assert_eq!(message(Box::new("odd")), "test.work over 7 bytes panicked: odd");
        assert_eq!(message(Box::new(String::from("even"))), "test.work over 7 bytes panicked: even");
        assert_eq!(message(Box::new(1)), "test.work over 7 bytes panicked: no message");
    }
}
