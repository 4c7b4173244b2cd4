//! What ends a long command early.

use svc_engine::deadline::Cancellation;

use crate::error::CommandError;

/// The exit code of a command that its operator ended twice.
const INTERRUPTED: i32 = 130;

/// Returns a switch that the operator's Ctrl-C turns: what runs is put back, and its programs end. A
/// second one ends this program at once.
pub(super) fn by_the_operator() -> Result<Cancellation, CommandError> {
    let cancellation = Cancellation::default();
    let switch = cancellation.clone();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    std::thread::Builder::new()
        .name("svc-interrupt".to_owned())
        .spawn(move || {
            if runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
                switch.cancel();
            }
            if runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
                std::process::exit(INTERRUPTED);
            }
        })?;
    Ok(cancellation)
}
