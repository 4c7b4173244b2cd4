//! The words of one provider of models.

/// Returns the word that stands for all words of a provider.
pub(super) fn family(provider: &str) -> &str {
    match provider {
        "vertex_ai" | "gcp.vertex_ai" => "vertex_ai",
        "bedrock_converse" | "bedrock" | "amazon-bedrock" | "aws.bedrock" => "bedrock",
        "gemini" | "google" | "gcp.gemini" | "gcp.gen_ai" => "gemini",
        "azure" | "azure.ai.openai" => "azure",
        "xai" | "x_ai" => "xai",
        "mistral" | "mistral_ai" => "mistral",
        _ if provider.starts_with("vertex_ai-") || provider.starts_with("google-vertex") => {
            "vertex_ai"
        }
        _ => provider,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_one_provider_are_equal_and_no_others() {
        for (words, of_family) in [
            (
                &[
                    "vertex_ai",
                    "vertex_ai-language-models",
                    "google-vertex",
                    "google-vertex-anthropic",
                    "gcp.vertex_ai",
                ][..],
                "vertex_ai",
            ),
            (
                &[
                    "bedrock",
                    "bedrock_converse",
                    "amazon-bedrock",
                    "aws.bedrock",
                ],
                "bedrock",
            ),
            (&["gemini", "google", "gcp.gemini", "gcp.gen_ai"], "gemini"),
            (&["azure", "azure.ai.openai"], "azure"),
            (&["xai", "x_ai"], "xai"),
            (&["mistral", "mistral_ai"], "mistral"),
            (&["openai"], "openai"),
            (&["OpenAI"], "OpenAI"),
            (&["azure_ai"], "azure_ai"),
            (&["vertex_ai_beta"], "vertex_ai_beta"),
            (&[""], ""),
        ] {
            for word in words {
                assert_eq!(family(word), of_family, "{word}");
            }
        }
    }
}
