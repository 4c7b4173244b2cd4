//! Building clients.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderValue;
use reqwest::redirect;
use secrecy::{ExposeSecret as _, SecretString};
use svc_model::version::SERVICE_VERSION;

use crate::base_url::{BaseUrl, PlainHttp};
use crate::build_error::BuildError;
use crate::client::{Client, ClientState, Deliveries};
use crate::environment;
use crate::retry::RetryPolicy;

/// Builds a [`Client`]. Everything has a default, except the URL.
///
/// ```
/// use std::time::Duration;
/// use svc_client::Client;
///
/// let client = Client::builder("https://svc.example")
///     .token("0123456789abcdef0123456789abcdef")
///     .timeout(Duration::from_secs(10))
///     .user_agent_suffix("my-agent/1.2")
///     .build()?;
/// assert!(!format!("{client:?}").contains("0123456789abcdef"));
/// # Ok::<(), svc_client::BuildError>(())
/// ```
#[must_use]
pub struct ClientBuilder {
    url: String,
    plain_http: PlainHttp,
    token: Option<SecretString>,
    connect_timeout: Duration,
    timeout: Duration,
    retry: RetryPolicy,
    reply_bytes_max: usize,
    user_agent_suffix: Option<String>,
    root_certificates: Vec<Vec<u8>>,
    proxy: Option<SecretString>,
    #[cfg(feature = "reqwest")]
    http: Option<Configure>,
}

#[cfg(feature = "reqwest")]
type Configure = Box<dyn FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder + Send>;

impl Client {
    /// Returns a builder for a client of the service at this URL: `https://host`, or `http` on a
    /// loopback address, optionally with a port and a path prefix.
    pub fn builder(url: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(url.into())
    }

    /// Returns a client that the environment configures; see [`ClientBuilder::from_env`].
    ///
    /// # Errors
    ///
    /// See [`BuildError`].
    pub fn from_env() -> Result<Self, BuildError> {
        ClientBuilder::from_env()?.build()
    }
}

impl ClientBuilder {
    /// The default URL of a service, which [`ClientBuilder::from_env`] uses if `SVC_URL` is not
    /// set.
    pub const DEFAULT_URL: &str = "http://127.0.0.1:8000";
    /// The default connect timeout.
    pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
    /// The default timeout of a call, retries included: slightly longer than the service's own
    /// deadline for a read.
    pub const TIMEOUT: Duration = Duration::from_secs(35);
    pub(crate) fn new(url: String) -> Self {
        Self {
            url,
            plain_http: PlainHttp::default(),
            token: None,
            connect_timeout: Self::CONNECT_TIMEOUT,
            timeout: Self::TIMEOUT,
            retry: RetryPolicy::default(),
            reply_bytes_max: usize::MAX,
            user_agent_suffix: None,
            root_certificates: Vec::new(),
            proxy: None,
            #[cfg(feature = "reqwest")]
            http: None,
        }
    }

    /// Returns a builder that the environment configures: the URL from `SVC_URL`, otherwise
    /// [`ClientBuilder::DEFAULT_URL`]; the token from `SVC_TOKEN`, otherwise from the file that
    /// `SVC_TOKEN_FILE` names, otherwise none; and the settings of
    /// [`ClientBuilder::connection_from_env`]. An empty value counts as unset.
    ///
    /// # Errors
    ///
    /// If a variable, or a file that it names, cannot be read.
    pub fn from_env() -> Result<Self, BuildError> {
        let url = environment::url()?.unwrap_or_else(|| Self::DEFAULT_URL.to_owned());
        Self {
            token: environment::token()?,
            ..Self::new(url)
        }
        .connection_from_env()
    }

    /// Applies the settings of the environment for connections: whether plain HTTP is allowed
    /// (`SVC_ALLOW_PLAIN_HTTP`), and additional root certificates (`SVC_CA_FILE`).
    ///
    /// # Errors
    ///
    /// If a variable, or a file that it names, cannot be read.
    pub fn connection_from_env(self) -> Result<Self, BuildError> {
        let builder = if environment::allow_plain_http()? {
            self.allow_plain_http()
        } else {
            self
        };
        Ok(match environment::root_certificates()? {
            Some(pem) => builder.root_certificates(pem),
            None => builder,
        })
    }

    /// Sets the token.
    pub fn token(self, token: impl Into<SecretString>) -> Self {
        Self {
            token: Some(token.into()),
            ..self
        }
    }

    /// Allows `http` to other machines. Anyone on the network can then read the token.
    pub fn allow_plain_http(self) -> Self {
        Self {
            plain_http: PlainHttp::Anywhere,
            ..self
        }
    }

    /// Sets the connect timeout.
    pub fn connect_timeout(self, timeout: Duration) -> Self {
        Self {
            connect_timeout: timeout,
            ..self
        }
    }

    /// Sets the timeout of a call, retries included.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Sets how often and when requests are retried.
    pub fn retry(self, retry: RetryPolicy) -> Self {
        Self { retry, ..self }
    }

    /// Sets the maximum size of a reply in bytes. It can lower the cap of a route
    /// ([`Endpoint::REPLY_BYTES_MAX`](crate::model::endpoint::Endpoint::REPLY_BYTES_MAX)), not
    /// raise it.
    pub fn reply_bytes_max(self, bytes: usize) -> Self {
        Self {
            reply_bytes_max: bytes,
            ..self
        }
    }

    /// Appends the name of the program to the user agent, `svc-client/VERSION`.
    pub fn user_agent_suffix(self, suffix: impl Into<String>) -> Self {
        Self {
            user_agent_suffix: Some(suffix.into()),
            ..self
        }
    }

    /// Trusts additional root certificates, one or more in PEM form, for example those of a
    /// company's own authority.
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.root_certificates.push(pem.into());
        self
    }

    /// Sends every request through the proxy at this URL. By default, the variables `HTTPS_PROXY`,
    /// `HTTP_PROXY` and `NO_PROXY` apply. A service on this machine is always called directly.
    pub fn proxy(self, url: impl Into<SecretString>) -> Self {
        Self {
            proxy: Some(url.into()),
            ..self
        }
    }

    /// Configures the underlying HTTP client, for example name resolution or a client certificate.
    ///
    /// The guarantees of this crate are applied afterwards: no redirects, the connect timeout, the
    /// user agent, and no proxy to a service on this machine. The type belongs to another crate,
    /// and this feature follows the version of that crate.
    ///
    /// ```
    /// # use svc_client::Client;
    /// # fn client() -> Result<Client, Box<dyn std::error::Error>> {
    /// let address = "10.0.0.7:443".parse()?;
    /// let client = Client::builder("https://svc.internal")
    ///     .http(move |http| http.resolve("svc.internal", address))
    ///     .build()?;
    /// # Ok(client)
    /// # }
    /// ```
    #[cfg(feature = "reqwest")]
    pub fn http(
        self,
        configure: impl FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder + Send + 'static,
    ) -> Self {
        Self {
            http: Some(Box::new(configure)),
            ..self
        }
    }

    /// Builds the client. Nothing is sent.
    ///
    /// # Errors
    ///
    /// See [`BuildError`].
    pub fn build(self) -> Result<Client, BuildError> {
        let base_url = BaseUrl::parse(&self.url, self.plain_http)?;
        let authorization = self.token.as_ref().map(authorization).transpose()?;
        let mut http = reqwest::Client::builder();
        #[cfg(feature = "reqwest")]
        if let Some(configure) = self.http {
            http = configure(http);
        }
        for pem in &self.root_certificates {
            let certificates =
                reqwest::Certificate::from_pem_bundle(pem).map_err(|_| BuildError::Certificate)?;
            if certificates.is_empty() {
                return Err(BuildError::Certificate);
            }
            http = http.tls_certs_merge(certificates);
        }
        if let Some(proxy) = &self.proxy {
            let proxy =
                reqwest::Proxy::all(proxy.expose_secret()).map_err(|_| BuildError::Proxy)?;
            http = http.proxy(proxy);
        }
        let http = http
            .redirect(redirect::Policy::none())
            .connect_timeout(self.connect_timeout)
            .user_agent(user_agent(self.user_agent_suffix.as_deref())?);
        let http = if base_url.is_loopback() {
            http.no_proxy()
        } else {
            http
        };
        let shared = ClientState {
            http: http
                .build()
                .map_err(|error| BuildError::Http(Box::new(error)))?,
            base_url,
            authorization,
            reply_bytes_max: self.reply_bytes_max,
        };
        Ok(Client {
            shared: Arc::new(shared),
            timeout: self.timeout,
            retry: self.retry,
            deliveries: Deliveries::Unnamed,
            trace: None,
        })
    }
}

fn authorization(token: &SecretString) -> Result<HeaderValue, BuildError> {
    let token = token.expose_secret();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(BuildError::Token);
    }
    let mut header =
        HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| BuildError::Token)?;
    header.set_sensitive(true);
    Ok(header)
}

fn user_agent(suffix: Option<&str>) -> Result<HeaderValue, BuildError> {
    let mut agent = format!("svc-client/{SERVICE_VERSION}");
    if let Some(suffix) = suffix {
        agent = format!("{agent} {suffix}");
    }
    HeaderValue::try_from(agent).map_err(|_| BuildError::UserAgent)
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL may be invalid and contain a password.
        f.debug_struct("ClientBuilder")
            .field("token", &self.token)
            .field("plain_http", &self.plain_http)
            .field("connect_timeout", &self.connect_timeout)
            .field("timeout", &self.timeout)
            .field("retry", &self.retry)
            .field("reply_bytes_max", &self.reply_bytes_max)
            .field("user_agent_suffix", &self.user_agent_suffix)
            .field("root_certificates", &self.root_certificates.len())
            .field("proxy", &self.proxy)
            .finish_non_exhaustive()
    }
}
