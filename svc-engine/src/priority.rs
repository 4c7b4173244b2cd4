//! How much of the processors long work takes while others want them.

/// Steps below the priority of the process: work that gives way gets about a third of what a request
/// gets on a processor that both want, and all of one that nobody wants.
#[cfg(target_os = "linux")]
const STEPS: i32 = 5;

/// Makes the calling thread, and the threads and programs that it starts, give way to others: what is
/// captured never waits for what is derived. It lasts as long as the thread. Only Linux has it for a
/// thread alone; elsewhere nothing happens.
pub(crate) fn give_way() {
    #[cfg(target_os = "linux")]
    {
        let own = rustix::process::getpriority_process(None).unwrap_or(0);
        // Whoever may not lower it goes on as before.
        if let Err(error) = rustix::process::setpriority_process(None, own + STEPS) {
            tracing::debug!(%error, "priority_kept");
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gives_way_alone_and_with_what_it_starts() {
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
