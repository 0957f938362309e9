//! What is told, one sentence each.

use super::*;

#[test]
fn sizes_move_in_steps() {
    assert_eq!(coarse(0), 0);
    assert_eq!(coarse(20_480), 16 << 20);
    assert_eq!(coarse((16 << 20) + 1), 32 << 20);
    let large = 1_i64 << 32;
    assert_eq!(coarse(large + 1), large + (1 << 30), "a quarter of four gigabytes");
    assert!(coarse(i64::MAX) > 0);
}

#[test]
fn a_member_that_is_nearly_there_is_not_behind() {
    assert_eq!(lag(10_999, 10_000), 0);
    assert_eq!(lag(12_000, 10_000), 2048);
    assert_eq!(lag(5, 10), 0);
}
