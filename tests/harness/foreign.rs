//! Programs of others that tests drive: clients, suites, a browser.
//!
//! They are installed from their registries, which a machine may not reach. There a test says what is
//! missing and ends, unless `SVC_TEST_FOREIGN` is `required`: then it fails.

/// The variable that says whether programs of others must be there.
pub const VARIABLE: &str = "SVC_TEST_FOREIGN";

/// Says why a test is left out.
///
/// # Panics
///
/// If nothing may be left out.
#[expect(clippy::print_stderr, reason = "a test that is left out must say so")]
pub fn left_out(why: &str) {
    let is_required = std::env::var(VARIABLE).is_ok_and(|value| value == "required");
    assert!(!is_required, "{VARIABLE} is required, and {why}");
    eprintln!("left out, because a program of others cannot be used here: {why}");
}
