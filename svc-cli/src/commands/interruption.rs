//! Interrupts a long-running command.

use svc_engine::deadline::Cancellation;

use crate::error::CommandError;

/// The exit code after a second Ctrl-C.
const INTERRUPTED: i32 = 130;

/// Returns a cancellation that Ctrl-C triggers. It rolls back running work and ends its child
/// processes. A second Ctrl-C ends this program at once.
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
