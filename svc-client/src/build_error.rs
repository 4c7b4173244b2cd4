use std::path::PathBuf;

use crate::base_url::BaseUrlError;

/// Why a client cannot be made. No text holds the token or the URL.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The URL is not that of a service.
    #[error(transparent)]
    Url(#[from] BaseUrlError),
    /// The token is empty, or holds a character that no header can.
    #[error("the token must be printable ASCII without blanks")]
    Token,
    /// The suffix of the user agent holds a character that no header can.
    #[error("the suffix of the user agent must be printable ASCII")]
    UserAgent,
    /// A variable of the environment is not Unicode.
    #[error("the value of {name} is not Unicode")]
    NotUnicode {
        /// The variable.
        name: &'static str,
    },
    /// A variable of the environment is neither true nor false.
    #[error("the value of {name} must be 1, true, 0 or false")]
    NotBoolean {
        /// The variable.
        name: &'static str,
    },
    /// The file of the root certificates cannot be read.
    #[error("the certificate file {} cannot be read", path.display())]
    CertificateFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The root certificates are none in PEM form.
    #[error("the root certificates must be in PEM form")]
    Certificate,
    /// The URL of the proxy is none.
    #[error("the URL of the proxy cannot be read")]
    Proxy,
    /// The file of the token cannot be read.
    #[error("the token file {} cannot be read", path.display())]
    TokenFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The HTTP library refuses: no usable certificates, for example.
    #[error("the HTTP client cannot be made")]
    Http(#[source] Box<dyn std::error::Error + Send + Sync>),
}
