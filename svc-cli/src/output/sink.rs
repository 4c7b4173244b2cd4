use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// A stream that keeps what is written to any of its clones.
#[derive(Clone, Default)]
pub(crate) struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("a whole sink").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("a whole sink").clone()).expect("text")
    }
}
