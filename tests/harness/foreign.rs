//! Other people's programs that tests drive: clients, test suites, a browser.
//!
//! They are installed from their registries, which a machine may not be able to reach. Then a test
//! says what is missing and ends, unless `SVC_TEST_FOREIGN` is `required` or `whole`, in which case
//! it fails. Each program is driven once; with `whole`, in every case.

use std::env;

/// The variable that says whether these programs must be present, and how far they are driven.
pub const VARIABLE: &str = "SVC_TEST_FOREIGN";

/// Returns whether these programs are driven in every case.
pub fn is_whole() -> bool {
    env::var(VARIABLE).is_ok_and(|value| value == "whole")
}

/// Returns the cases to drive a program in: all of them, or the first.
pub fn cases<T>(all: &[T]) -> &[T] {
    if is_whole() {
        all
    } else {
        &all[..all.len().min(1)]
    }
}

/// Says why a test is left out.
///
/// # Panics
///
/// If nothing may be left out.
#[expect(clippy::print_stderr, reason = "a test that is left out must say so")]
pub fn left_out(why: &str) {
    let is_required = env::var(VARIABLE).is_ok_and(|value| value == "required") || is_whole();
    assert!(!is_required, "{VARIABLE} is required, and {why}");
    eprintln!("left out, because a program of others cannot be used here: {why}");
}
