//! What is wrong with settings.

use std::fmt;

use crate::env;

/// Every error in the settings, by the name of the setting.
#[derive(Debug, PartialEq, Eq)]
pub struct SettingsError(pub(super) Vec<String>);

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [mistake] => write!(f, "invalid settings: {mistake}"),
            mistakes => write!(f, "invalid settings:\n{}", mistakes.join("\n")),
        }
    }
}

impl std::error::Error for SettingsError {}

impl SettingsError {
    /// Returns the lines of a shell that generate the required secrets that are not set.
    pub fn generating(&self) -> Vec<&'static str> {
        let required = [
            (
                env::OPERATOR_TOKEN.name,
                "export SVC_OPERATOR_TOKEN=$(openssl rand -hex 32)",
            ),
            (
                env::INGEST_TOKENS.name,
                r#"export SVC_INGEST_TOKENS="{\"gateway\":\"$(openssl rand -hex 32)\"}""#,
            ),
            (
                env::FORGE_WEBHOOK_SECRET.name,
                "export SVC_FORGE_WEBHOOK_SECRET=$(openssl rand -hex 32)",
            ),
        ];
        let is_unset = |name: &str| {
            let mut mistakes = self.0.iter();
            mistakes.any(|mistake| mistake.starts_with(name) && mistake.ends_with("must be set"))
        };
        let unset = required.into_iter().filter(|(name, _)| is_unset(name));
        unset.map(|(_, line)| line).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::settings::Settings;

    #[test]
    fn secrets_that_are_not_set_can_be_generated() {
        let generating = |variables: &[(&str, &str)]| {
            let lines = Settings::of(variables)
                .err()
                .map(|error| error.generating());
            lines.unwrap_or_default().join("\n")
        };
        let all = generating(&[]);
        let given = "a-given-secret-of-its-own";
        for name in ["OPERATOR_TOKEN", "INGEST_TOKENS", "FORGE_WEBHOOK_SECRET"] {
            assert!(all.contains(&format!("export SVC_{name}=")), "{all}");
        }
        let one = generating(&[
            ("SVC_OPERATOR_TOKEN", given),
            ("SVC_API_BEARER_TOKEN", given),
        ]);
        assert!(one.starts_with("export SVC_FORGE_WEBHOOK_SECRET="), "{one}");
        assert_eq!(one.lines().count(), 1);
    }
}
