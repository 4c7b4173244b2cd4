use std::path::PathBuf;

use crate::base_url::BaseUrlError;

/// Why a client cannot be created. No message contains the token or the URL.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The URL is not a valid base URL.
    #[error(transparent)]
    Url(#[from] BaseUrlError),
    /// The token is empty, or contains a character that is not allowed in a header.
    #[error("the token must be printable ASCII without spaces")]
    Token,
    /// The suffix of the user agent contains a character that is not allowed in a header.
    #[error("the suffix of the user agent must be printable ASCII")]
    UserAgent,
    /// An environment variable is not Unicode.
    #[error("the value of {name} is not Unicode")]
    NotUnicode {
        /// The name of the variable.
        name: &'static str,
    },
    /// An environment variable is neither `1`, `true`, `0` nor `false`.
    #[error("the value of {name} must be 1, true, 0 or false")]
    NotBoolean {
        /// The name of the variable.
        name: &'static str,
    },
    /// The file with root certificates cannot be read.
    #[error("the certificate file {} cannot be read", path.display())]
    CertificateFile {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The root certificates are not in PEM form.
    #[error("the root certificates must be in PEM form")]
    Certificate,
    /// The proxy's URL is invalid.
    #[error("the URL of the proxy is invalid")]
    Proxy,
    /// The file with the token cannot be read.
    #[error("the token file {} cannot be read", path.display())]
    TokenFile {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The HTTP library failed, for example because there are no usable certificates.
    #[error("the HTTP client cannot be created")]
    Http(#[source] Box<dyn std::error::Error + Send + Sync>),
}
