//! Named values, one per line.

/// The fields of one thing.
#[derive(Debug, Default)]
pub(crate) struct Fields(Vec<(&'static str, String)>);

impl Fields {
    /// Adds a field. An external value must already be escaped.
    pub(crate) fn add(&mut self, name: &'static str, value: impl Into<String>) {
        self.0.push((name, value.into()));
    }

    /// Adds a field if there is a value.
    pub(crate) fn add_some(&mut self, name: &'static str, value: Option<impl Into<String>>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }

    /// Returns the lines.
    pub(crate) fn render(&self) -> String {
        let width = self.0.iter().map(|(name, _)| name.len()).max();
        let width = width.unwrap_or_default() + 2;
        let lines = self.0.iter().map(|(name, value)| {
            let line = format!("{name:<width$}{value}");
            format!("{}\n", line.trim_end())
        });
        lines.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_aligned_below_each_other() {
        let mut fields = Fields::default();
        fields.add("a", "1");
        fields.add_some("longer", Some("2"));
        fields.add_some("none", None::<String>);
        assert_eq!(fields.render(), "a       1\nlonger  2\n");
    }
}
