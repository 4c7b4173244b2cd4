//! Requests about price tables.

use std::fmt;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::field::{FieldKind, FromField, Violation, Violations, kept_text, scalar_text};
use crate::id::identity_string;
use crate::json::{Json, WriteError};
use crate::limit::PRICE_TABLE_NAME_BYTES_MAX;
use crate::parameter::{Declared, Parameter, ParameterValue, parameters};
use crate::query::ModelName;
use crate::request::{Incoming, Outgoing, Refusal, Request};

identity_string! {
    /// The name of a provider of models, as it is captured: not empty, at most 1,024 bytes. The words
    /// of one provider are equal, such as `gemini` and `gcp.gemini`.
    ModelProviderName
}

/// A name for a price table: not blank, without NUL, at most 256 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceTableLabel(String);

impl PriceTableLabel {
    /// Takes a text.
    ///
    /// # Errors
    ///
    /// If the text is blank, too long, or contains NUL.
    pub fn new(text: &str) -> Result<Self, &'static str> {
        let text = kept_text(
            text,
            PRICE_TABLE_NAME_BYTES_MAX,
            "must have at most 256 bytes of UTF-8",
        )?;
        Ok(Self(text.to_owned()))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PriceTableLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromField for PriceTableLabel {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        Self::new(scalar_text(value)?).map_err(Violation::rule)
    }
}

impl ParameterValue for PriceTableLabel {
    fn to_parameter(&self) -> String {
        self.0.clone()
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for PriceTableLabel {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PriceTableLabel".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "maxLength": PRICE_TABLE_NAME_BYTES_MAX })
    }
}

/// A file of prices to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceFileRequest {
    /// The name of the table; without one, it is called `prices`.
    pub name: Option<PriceTableLabel>,
    /// The bytes of the file.
    pub file: Vec<u8>,
}

impl PriceFileRequest {
    const NAME: Declared<PriceTableLabel> = Declared::optional(
        "name",
        "The name of the table, at most 256 bytes; by default `prices`.",
    );

    /// Returns a request to load a file.
    pub fn new(file: impl Into<Vec<u8>>) -> Self {
        Self {
            name: None,
            file: file.into(),
        }
    }
}

impl Request for PriceFileRequest {
    const PARAMETERS: &'static [Parameter] = parameters![Self::NAME];

    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let mut violations = Violations::default();
        let name = Self::NAME.read(incoming, &mut violations);
        if incoming.body.is_empty() {
            let missing = Violation::new(FieldKind::Missing, "field required");
            violations.push(missing.at(vec!["body".into()]));
        }
        let file = incoming.body.to_vec();
        Ok(violations.finish(|| Some(Self { name, file }))?)
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        let outgoing = Outgoing {
            body: Some(self.file.clone()),
            ..Outgoing::default()
        };
        Ok(Self::NAME.write_any(outgoing, self.name.as_ref()))
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for PriceFileRequest {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PriceFile".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "A file of prices: LiteLLM's list of models, an object from a model's key \
                            to its rates in USD per token; or the document of models.dev, an object \
                            from a provider to its models, with rates in USD per million tokens.",
        })
    }
}

/// Asks what the price table in force says of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelPriceRequest {
    /// The model, exactly as it is captured.
    pub model: ModelName,
    /// Its provider, if the call names one.
    pub provider: Option<ModelProviderName>,
}

impl ModelPriceRequest {
    const MODEL: Declared<ModelName> =
        Declared::required("model", "The model, exactly as it is captured.");
    const PROVIDER: Declared<ModelProviderName> = Declared::optional(
        "provider",
        "The provider of the model, as it is captured; without one, as for a call that names none.",
    );

    /// Returns a request about a model whose provider is unknown.
    pub const fn new(model: ModelName) -> Self {
        Self {
            model,
            provider: None,
        }
    }
}

impl Request for ModelPriceRequest {
    const PARAMETERS: &'static [Parameter] = parameters![Self::MODEL, Self::PROVIDER];

    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let mut violations = Violations::default();
        let model = Self::MODEL.read(incoming, &mut violations);
        let provider = Self::PROVIDER.read(incoming, &mut violations);
        Ok(violations.finish(|| {
            Some(Self {
                model: model?,
                provider,
            })
        })?)
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        let outgoing = Self::MODEL.write(Outgoing::default(), &self.model);
        Ok(Self::PROVIDER.write_any(outgoing, self.provider.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_short_name() {
        assert!(PriceTableLabel::new("prices.json").is_ok());
        assert!(PriceTableLabel::new(&"x".repeat(256)).is_ok());
        for refused in ["", " ", "a\0b", &"x".repeat(257)] {
            assert!(PriceTableLabel::new(refused).is_err(), "{refused:?}");
        }
    }
}
