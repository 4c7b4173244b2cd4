//! The priority of long work while others want the processors.

/// Steps below the priority of the process. On a busy processor, such work gets about a third of
/// the time that a request gets; on an idle one, all of it.
#[cfg(target_os = "linux")]
const STEPS: i32 = 5;

/// Lowers the priority of the calling thread, and of the threads and programs that it starts, for
/// as long as the thread lives: capture never waits for derivation. Only Linux can do this for a
/// single thread; elsewhere nothing happens.
pub(crate) fn give_way() {
    #[cfg(target_os = "linux")]
    {
        let own = rustix::process::getpriority_process(None).unwrap_or(0);
        // Without the permission, work continues at the usual priority.
        if let Err(error) = rustix::process::setpriority_process(None, own + STEPS) {
            tracing::debug!(%error, "background.priority_kept");
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_lowered_priority_applies_to_the_thread_and_what_it_starts() {
        let of_thread = || rustix::process::getpriority_process(None).unwrap();
        let before = of_thread();
        let (here, started) = std::thread::scope(|scope| {
            let gives_way = scope.spawn(|| {
                give_way();
                let started = std::thread::spawn(of_thread).join().unwrap();
                (of_thread(), started)
            });
            gives_way.join().unwrap()
        });
        assert_eq!(
            (here, started),
            ((before + STEPS).min(19), (before + STEPS).min(19))
        );
        assert_eq!(of_thread(), before);
    }
}
