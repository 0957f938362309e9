//! A panic ends the work that it happened in, and nothing else.
//! Comes in: work. Goes out: what came of it, or nothing.
//! May touch: std. The work owns or only reads what it is given, so nothing half-done is left behind
//! for others to see.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::panic::{AssertUnwindSafe, catch_unwind};

/// What came of the work; nothing if it panicked.
pub(crate) fn contained<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_panics_comes_to_nothing_and_the_next_goes_on() {
        assert_eq!(contained(|| -> u8 { panic!("on purpose") }), None);
        assert_eq!(contained(|| 7), Some(7));
    }
}
