//! The product names of systems, and the names of models.

use svc_model::ingest::{CiProvider, GatewayProvider};
use svc_model::open::Open;

/// A kind of system that has a product name. JSON uses a neutral word for it.
pub trait Product: Copy + Send + Sync + 'static {
    /// Every kind.
    const ALL: &'static [Self];

    /// Returns the product name of a kind of system. For a kind that only a newer service knows,
    /// returns its word, which is external text.
    fn product(self) -> &'static str;

    /// Returns the neutral word of the service.
    fn word(self) -> &'static str;

    /// Returns the kind with this product name or neutral word.
    fn named(text: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|kind| kind.product() == text || kind.word() == text)
    }
}

impl Product for CiProvider {
    const ALL: &'static [Self] = Self::ALL;

    fn product(self) -> &'static str {
        match self {
            Self::ForgeActions => "github-actions",
            Self::CiA => "jenkins",
            Self::CiB => "gitlab-ci",
            Self::CiC => "circleci",
            Self::CiD => "buildkite",
            Self::Other => "other",
        }
    }

    fn word(self) -> &'static str {
        self.as_str()
    }
}

impl Product for GatewayProvider {
    const ALL: &'static [Self] = Self::ALL;

    fn product(self) -> &'static str {
        match self {
            Self::GatewayA => "litellm",
            Self::GatewayB => "portkey",
            Self::GatewayC => "helicone",
            Self::Unknown => "unknown",
        }
    }

    fn word(self) -> &'static str {
        self.as_str()
    }
}

/// Returns the product name of a kind of system. For one that only a newer service knows, returns
/// its word, which is external text.
pub fn product<T: Product>(kind: &Open<T>) -> &str {
    match kind {
        Open::Known(kind) => kind.product(),
        Open::Unknown(word) => word.word(),
    }
}

/// Returns the provider and the name of a model: `anthropic/claude-opus-5`. Many gateways put the
/// provider before the name too; it is not repeated. What is unknown is a dash.
pub fn model(provider: Option<&str>, name: Option<&str>) -> String {
    model_or(provider, name, "-")
}

/// Returns a model as [`model`] does, with this placeholder for what is unknown.
pub(crate) fn model_or(provider: Option<&str>, name: Option<&str>, unknown: &str) -> String {
    let is_in = |name: &str, provider: &str| {
        let rest = name.strip_prefix(provider);
        rest.is_some_and(|rest| rest.starts_with('/'))
    };
    match (provider, name) {
        (Some(provider), Some(name)) if is_in(name, provider) => name.to_owned(),
        _ => format!(
            "{}/{}",
            provider.unwrap_or(unknown),
            name.unwrap_or(unknown)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_named_once() {
        for (provider, name, shown) in [
            (Some("openai"), Some("gpt-6"), "openai/gpt-6"),
            (Some("openai"), Some("openai/gpt-6"), "openai/gpt-6"),
            (Some("openai"), Some("openai-gpt"), "openai/openai-gpt"),
            (Some("openai"), Some("azure/gpt-6"), "openai/azure/gpt-6"),
            (None, Some("openai/gpt-6"), "-/openai/gpt-6"),
            (Some("openai"), None, "openai/-"),
        ] {
            assert_eq!(model(provider, name), shown);
        }
    }
}
