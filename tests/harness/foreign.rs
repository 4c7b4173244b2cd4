//! Other people's programs that tests drive: clients, test suites, a browser.
//!
//! They are installed from their registries, which a machine may not be able to reach. Then a test
//! says what is missing and ends, unless `SVC_TEST_FOREIGN` is `required`, in which case it fails.

/// The variable that says whether these programs must be present.
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
