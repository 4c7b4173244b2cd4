//! The environment variables that a client reads.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use secrecy::SecretString;

use crate::build_error::BuildError;

/// The URL of the service.
pub const URL: &str = "SVC_URL";
/// The token of the client.
pub const TOKEN: &str = "SVC_TOKEN";
/// The path of a file that contains only the token of the client.
pub const TOKEN_FILE: &str = "SVC_TOKEN_FILE";
/// Whether `http` to other machines is allowed: `1` or `true`; see
/// [`ClientBuilder::allow_plain_http`](crate::ClientBuilder::allow_plain_http).
pub const ALLOW_PLAIN_HTTP: &str = "SVC_ALLOW_PLAIN_HTTP";
/// The path of a file with root certificates in PEM form, which are trusted in addition to those of
/// the system.
pub const CA_FILE: &str = "SVC_CA_FILE";

/// The maximum sizes of the files in bytes. A path may lead to something that has no end.
const TOKEN_FILE_BYTES_MAX: u64 = 64 * 1024;
const CA_FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Returns the URL from the environment. An empty value counts as unset.
///
/// # Errors
///
/// If the value is not Unicode.
pub fn url() -> Result<Option<String>, BuildError> {
    variable(URL)
}

/// Returns the token from the environment: from [`TOKEN`], otherwise from the file that
/// [`TOKEN_FILE`] names. An empty value counts as unset.
///
/// # Errors
///
/// If a value is not Unicode, or the file cannot be read or has more than 64 KiB.
pub fn token() -> Result<Option<SecretString>, BuildError> {
    if let Some(token) = variable(TOKEN)? {
        return Ok(Some(token.into()));
    }
    let Some(path) = std::env::var_os(TOKEN_FILE).filter(|path| !path.is_empty()) else {
        return Ok(None);
    };
    let path = PathBuf::from(path);
    let read = read_within(&path, TOKEN_FILE_BYTES_MAX)
        .and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other));
    let token = read.map_err(|source| BuildError::TokenFile { path, source })?;
    let token = token.trim();
    Ok((!token.is_empty()).then(|| token.into()))
}

/// Returns whether the environment allows `http` to other machines. An empty value counts as unset.
///
/// # Errors
///
/// If the value is neither `1`, `true`, `0` nor `false`.
pub fn allow_plain_http() -> Result<bool, BuildError> {
    match variable(ALLOW_PLAIN_HTTP)?.as_deref() {
        Some("1" | "true") => Ok(true),
        None | Some("0" | "false") => Ok(false),
        Some(_) => Err(BuildError::NotBoolean {
            name: ALLOW_PLAIN_HTTP,
        }),
    }
}

/// Returns the root certificates from the file that [`CA_FILE`] names. An empty value counts as
/// unset.
///
/// # Errors
///
/// If the file cannot be read or has more than 16 MiB.
pub fn root_certificates() -> Result<Option<Vec<u8>>, BuildError> {
    let Some(path) = std::env::var_os(CA_FILE).filter(|path| !path.is_empty()) else {
        return Ok(None);
    };
    let path = PathBuf::from(path);
    read_within(&path, CA_FILE_BYTES_MAX)
        .map(Some)
        .map_err(|source| BuildError::CertificateFile { path, source })
}

/// Reads a file of at most this many bytes.
fn read_within(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(bytes_max + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

fn variable(name: &'static str) -> Result<Option<String>, BuildError> {
    match std::env::var(name) {
        Ok(value) => Ok(Some(value.trim().to_owned()).filter(|value| !value.is_empty())),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => Err(BuildError::NotUnicode { name }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_file_is_refused() {
        assert_eq!(read_within(Path::new("/dev/null"), 0).unwrap(), b"");
        let endless = read_within(Path::new("/dev/zero"), 1_000).unwrap_err();
        assert_eq!(endless.kind(), io::ErrorKind::FileTooLarge);
        let (folder, bytes) = (std::env::temp_dir(), [b'x'; 10]);
        let file = folder.join(format!("svc-read-within-{}", std::process::id()));
        std::fs::write(&file, bytes).unwrap();
        let read = (read_within(&file, 10), read_within(&file, 9));
        std::fs::remove_file(&file).unwrap();
        assert_eq!(read.0.unwrap(), bytes);
        assert_eq!(read.1.unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
