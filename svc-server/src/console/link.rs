//! Addresses within the console. Ids are in the query, because in a path a browser would resolve
//! `..`, which is a valid Session id.

/// An address within the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link(String);

impl Link {
    /// Starts an address with its path, which needs no encoding.
    pub(super) fn to(path: &'static str) -> Self {
        Self(path.to_owned())
    }

    /// Adds a parameter.
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        let separator = if self.0.contains('?') { '&' } else { '?' };
        self.0.push(separator);
        let pair = form_urlencoded::Serializer::new(String::new())
            .append_pair(name, value)
            .finish();
        self.0.push_str(&pair);
        self
    }

    /// Adds a parameter that may be absent.
    pub(super) fn with_any(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Leads to a place within the page. It comes last.
    pub(super) fn at(mut self, id: &str) -> Self {
        self.0.push('#');
        self.0.push_str(id);
        self
    }

    /// Returns the address of a console page from a form.
    pub(super) fn back(text: &str) -> Option<Self> {
        let path = text.split('?').next()?;
        let is_page = super::routes()
            .iter()
            .any(|route| !route.is_open && route.path == path);
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        (is_page && is_plain).then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl maud::Render for Link {
    fn render_to(&self, buffer: &mut String) {
        self.0.render_to(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_a_link_are_encoded() {
        let link = Link::to("/console/session")
            .with("session_id", "../a b&c=\"<é")
            .with_any("none", None)
            .with("page", "2");
        assert_eq!(
            link.as_str(),
            "/console/session?session_id=..%2Fa+b%26c%3D%22%3C%C3%A9&page=2"
        );
    }

    #[test]
    fn a_way_back_leads_only_to_pages_of_the_console() {
        for here in [
            "/console",
            "/console/session?session_id=a",
            "/console/sessions",
        ] {
            assert_eq!(Link::back(here).unwrap().as_str(), here);
        }
        for elsewhere in [
            "",
            "/",
            "//evil.example",
            "https://evil.example/console",
            "/console/../x",
            "/console/sign-in",
            "/console/assets/{name}",
            "/consolex",
            "/console\r\nset-cookie: a=b",
            "/console? x",
            "/\\evil.example",
        ] {
            assert_eq!(Link::back(elsewhere), None, "{elsewhere}");
        }
    }
}
