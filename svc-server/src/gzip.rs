//! Inflates a body while it arrives, and never beyond its maximum size.
//!
//! For a caller without a credential nothing is decompressed. At the cap the work is abandoned, so
//! a zip bomb costs at most the cap.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use svc_model::problem::Problem;

/// Larger input is inflated in a way that does not block other requests, because it may become a
/// thousand times as large.
const INLINE_BYTES_MAX: usize = 4 * 1024;

/// A body that is being inflated: one gzip member, or several in a row.
pub(crate) struct Inflater(MultiGzDecoder<Capped>);

impl Inflater {
    /// Starts inflating a body to at most `bytes_max`.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self(MultiGzDecoder::new(Capped {
            bytes: Vec::new(),
            bytes_max,
            exceeded: false,
        }))
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    ///
    /// If the content exceeds the maximum, or the bytes are not gzip. No more bytes may follow an
    /// error.
    pub(crate) fn take(&mut self, data: &[u8]) -> Result<(), Problem> {
        let inflated = if data.len() > INLINE_BYTES_MAX {
            tokio::task::block_in_place(|| self.0.write_all(data))
        } else {
            self.0.write_all(data)
        };
        inflated.map_err(|_| self.problem())
    }

    /// Returns the content, once all bytes have been taken.
    ///
    /// # Errors
    ///
    /// As for [`Inflater::take`], and also if the bytes end too early or the checksums do not
    /// match.
    pub(crate) fn finish(mut self) -> Result<Bytes, Problem> {
        match self.0.try_finish() {
            Ok(()) => Ok(std::mem::take(&mut self.0.get_mut().bytes).into()),
            Err(_) => Err(self.problem()),
        }
    }

    /// Returns how many bytes of memory the content takes.
    pub(crate) fn bytes(&self) -> usize {
        self.0.get_ref().bytes.capacity()
    }

    fn problem(&self) -> Problem {
        if self.0.get_ref().exceeded {
            Problem::BodyTooLarge
        } else {
            Problem::MalformedEncoding
        }
    }
}

/// Bytes up to a maximum, which take no more memory than that.
struct Capped {
    bytes: Vec<u8>,
    bytes_max: usize,
    exceeded: bool,
}

impl Write for Capped {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if data.len() > self.bytes_max - self.bytes.len() {
            self.exceeded = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        make_room(&mut self.bytes, data.len(), self.bytes_max);
        self.bytes.extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Makes room for more bytes, up to a maximum, which a vector that doubles its capacity could
/// exceed.
pub(crate) fn make_room(bytes: &mut Vec<u8>, more: usize, bytes_max: usize) {
    let length = bytes.len();
    if more > bytes.capacity() - length {
        let room = (2 * length).min(bytes_max).max(length + more);
        bytes.reserve_exact(room - length);
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn inflated<'d>(
        chunks: impl IntoIterator<Item = &'d [u8]>,
        bytes_max: usize,
    ) -> Result<Bytes, Problem> {
        let mut inflater = Inflater::new(bytes_max);
        for chunk in chunks {
            inflater.take(chunk)?;
        }
        inflater.finish()
    }

    #[test]
    fn a_body_is_inflated_from_chunks_of_any_size() {
        let content = b"pager window ".repeat(40);
        let body = gzip(&content);
        for size in 1..body.len() {
            let found = inflated(body.chunks(size), content.len());
            assert_eq!(found.unwrap(), content, "{size}");
        }
    }

    #[test]
    fn several_members_are_one_body() {
        let body = [gzip(b"first "), gzip(b""), gzip(b"second")].concat();
        for size in [1, 7, body.len()] {
            assert_eq!(
                inflated(body.chunks(size), 100).unwrap(),
                b"first second"[..],
                "{size}"
            );
        }
    }

    #[test]
    fn the_cap_is_exact_and_bounds_the_memory() {
        let body = gzip(&vec![0; 100_000]);
        let found = inflated([body.as_slice()], 100_000).unwrap();
        assert_eq!(found.len(), 100_000);
        let mut inflater = Inflater::new(99_999);
        // The last bytes are still in the decoder's own small buffer.
        assert_eq!(inflater.take(&body), Ok(()));
        assert!(inflater.0.get_ref().bytes.capacity() <= 99_999);
        assert_eq!(inflater.finish(), Err(Problem::BodyTooLarge));
    }

    #[test]
    fn a_decompression_bomb_is_stopped_at_the_cap() {
        // Ten members, each a hundred times as large as the maximum when inflated.
        let body = gzip(&vec![b'x'; 10_000_000]).repeat(10);
        let found = inflated(body.chunks(1_000), 100_000);
        assert_eq!(found, Err(Problem::BodyTooLarge));
    }

    #[test]
    fn invalid_gzip_is_refused() {
        let whole = gzip(b"content");
        let mut wrong_sum = whole.clone();
        let sum = wrong_sum.len() - 5;
        wrong_sum[sum] ^= 1;
        for body in [
            &b""[..],
            b"{}",
            b"\x1f\x8b",
            b"\x28\xb5\x2f\xfd",
            &whole[..whole.len() - 1],
            &whole[..whole.len() - 9],
            &whole[..12],
            &wrong_sum,
            &[whole.as_slice(), b"rest"].concat(),
        ] {
            for size in [1, 1_000] {
                let found = inflated(body.chunks(size), 1_000);
                assert_eq!(found, Err(Problem::MalformedEncoding), "{body:?}");
            }
        }
    }
}
