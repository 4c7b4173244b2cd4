//! Numbers of bytes, for people.

/// Returns a number of bytes in mebibytes.
pub(crate) fn shown_bytes(bytes: u64) -> String {
    #[expect(
        clippy::cast_precision_loss,
        reason = "one digit after the decimal point is shown"
    )]
    let mebibytes = bytes as f64 / (1024.0 * 1024.0);
    format!("{mebibytes:.1} MiB")
}
