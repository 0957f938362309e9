//! Catches a panic, so that it fails one unit of work and nothing else.
//!
//! The work owns or only reads its inputs, so a panic leaves no partly written state behind that
//! other code could see.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::panic::{AssertUnwindSafe, catch_unwind};

/// The result of the work; `None` if it panicked.
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_is_caught_and_later_work_succeeds() {
        assert_eq!(catch_panic(|| -> u8 { panic!("on purpose") }), None);
        assert_eq!(catch_panic(|| 7), Some(7));
    }
}
