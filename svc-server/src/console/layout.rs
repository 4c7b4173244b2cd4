//! The common layout of pages, and tables.

use maud::{DOCTYPE, Markup, html};
use svc_model::problem::Problem;
use svc_model::version::SERVICE_VERSION;

use super::asset::{ICON, STYLE};
use super::link::Link;
use super::refused;
use crate::auth::Caller;

/// A part of the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Overview,
    Sessions,
    Failures,
    Models,
    Comparison,
    Lifecycle,
    Abandonment,
    Retention,
    Share,
    Spend,
    Health,
    Quarantine,
    SignOut,
    /// None of the sections.
    Other,
}

/// The sections that every page links to.
const SECTIONS: [(Section, &str, &str); 13] = [
    (Section::Overview, "/console", "Overview"),
    (Section::Sessions, "/console/sessions", "Sessions"),
    (Section::Failures, "/console/failures", "CI failures"),
    (Section::Models, "/console/models", "Models"),
    (Section::Comparison, "/console/comparison", "Comparison"),
    (Section::Lifecycle, "/console/lifecycle", "Lifecycle"),
    (Section::Abandonment, "/console/abandonment", "Abandonment"),
    (Section::Retention, "/console/retention", "Retention"),
    (Section::Share, "/console/share", "Attribution"),
    (Section::Spend, "/console/spend", "Spend"),
    (Section::Health, "/console/health", "Health"),
    (Section::Quarantine, "/console/quarantine", "Quarantine"),
    (Section::SignOut, "/console/sign-out", "Sign out"),
];

/// The path of the search.
pub(super) const SEARCH: &str = "/console/search";

/// A page.
pub(super) struct Page {
    pub(super) section: Section,
    title: String,
    /// The pages above this one, from the top.
    trail: Vec<(String, Link)>,
    /// The problem for which the page's content cannot be shown.
    pub(super) problem: Option<Problem>,
    body: Markup,
}

impl Page {
    pub(super) fn new(section: Section, title: impl Into<String>, body: Markup) -> Self {
        Self {
            section,
            title: title.into(),
            trail: Vec::new(),
            problem: None,
            body,
        }
    }

    /// Returns a page with a form above its body, or above the problem for which it has none.
    pub(super) fn of(
        section: Section,
        title: impl Into<String>,
        form: &Markup,
        body: Result<Markup, Problem>,
    ) -> Self {
        match body {
            Ok(body) => Self::new(section, title, html! { (form) (body) }),
            Err(problem) => Self::new(section, title, form.clone()).with_problem(problem),
        }
    }

    /// Returns a page for a problem.
    pub(super) fn refused(problem: &Problem) -> Self {
        Self::new(Section::Other, "Nothing to show", html! {}).with_problem(problem.clone())
    }

    /// Shows a problem at the top of the page.
    #[must_use]
    pub(super) fn with_problem(mut self, problem: Problem) -> Self {
        self.problem = Some(problem);
        self
    }

    /// Adds a parent page.
    #[must_use]
    pub(super) fn below(mut self, title: impl Into<String>, link: Link) -> Self {
        self.trail.push((title.into(), link));
        self
    }
}

/// Returns a whole page.
pub(super) fn page(page: &Page, caller: Option<&Caller>) -> Markup {
    let navigation = html! {
        @if caller.is_some() {
            (search())
            nav aria-label="Console" {
                ul {
                    @for (section, path, name) in SECTIONS {
                        li { a href=(path) aria-current=[(section == page.section).then_some("page")] { (name) } }
                    }
                }
            }
        }
    };
    let content = html! {
        @if !page.trail.is_empty() {
            nav.trail aria-label="Above this page" {
                ol { @for (title, link) in &page.trail { li { a href=(link) { (title) } } } }
            }
        }
        h1 { (page.title) }
        @if let Some(problem) = &page.problem { (refused::problem(problem)) }
        (page.body)
    };
    around(&page.title, &navigation, &content)
}

/// Returns the box for a search, which has a key of its own in browsers.
fn search() -> Markup {
    html! {
        form.find method="get" action=(SEARCH) role="search" aria-label="Search" {
            input type="search" name="q" aria-label="Search what was said in Sessions"
                placeholder="Search" accesskey="/" autocomplete="off" spellcheck="false";
        }
    }
}

/// Returns a page for somebody who has not signed in.
pub(super) fn bare(title: &str, body: &Markup) -> Markup {
    let content = html! { h1 { (title) } (body) };
    around(title, &html! {}, &content)
}

fn around(title: &str, navigation: &Markup, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " – svc console" }
                link rel="stylesheet" href=(STYLE.path);
                link rel="icon" href=(ICON.path) type="image/svg+xml";
            }
            body {
                a.skip href="#content" { "Skip to the content" }
                header {
                    p.brand { a href="/console" { "svc console" } }
                    (navigation)
                }
                main #content tabindex="-1" { (content) }
                footer { p { "svc " (SERVICE_VERSION) " · The console is read-only. All times are UTC." } }
            }
        }
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(super) enum Column {
    /// A column of texts.
    Text(&'static str),
    /// A column of numbers, aligned by their last digit.
    Number(&'static str),
}

impl Column {
    const fn name(self) -> &'static str {
        match self {
            Self::Text(name) | Self::Number(name) => name,
        }
    }

    const fn class(self) -> Option<&'static str> {
        match self {
            Self::Text(_) => None,
            Self::Number(_) => Some("number"),
        }
    }
}

/// Returns a table whose first cell in each row is the row header.
pub(super) fn table(caption: &str, columns: &[Column], rows: Vec<Vec<Markup>>) -> Markup {
    html! {
        div.scroll role="region" aria-label=(caption) tabindex="0" {
            table {
                caption { (caption) }
                thead {
                    tr { @for column in columns { th scope="col" class=[column.class()] { (column.name()) } } }
                }
                tbody {
                    @for row in rows {
                        tr {
                            @for (place, (cell, column)) in row.into_iter().zip(columns).enumerate() {
                                @if place == 0 {
                                    th scope="row" class=[column.class()] { (cell) }
                                } @else {
                                    td class=[column.class()] { (cell) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns named values.
pub(super) fn fields<N: AsRef<str>>(fields: Vec<(N, Markup)>) -> Markup {
    html! {
        dl.fields {
            @for (name, value) in fields { div { dt { (name.as_ref()) } dd { (value) } } }
        }
    }
}

/// Returns a note that explains how to read the content beside it.
pub(super) fn note(text: &str) -> Markup {
    html! { p.note { (text) } }
}

/// One field of a filter form.
pub(super) struct Field<'a> {
    pub(super) label: &'a str,
    pub(super) name: &'a str,
    pub(super) value: &'a str,
    pub(super) kind: InputKind<'a>,
}

/// How a field is filled in.
pub(super) enum InputKind<'a> {
    /// With a text.
    Text,
    /// With a text, with suggestions.
    Known(&'a [String]),
    /// With a date.
    Date,
    /// With one of these options, each given by its value and name.
    One(&'a [(&'a str, &'a str)]),
}

/// Returns a filter form.
pub(super) fn narrowing(path: &str, label: &str, fields: &[Field<'_>]) -> Markup {
    html! {
        form.narrow method="get" action=(path) role="search" aria-label=(label) {
            @for field in fields {
                div {
                    label for=(field.name) { (field.label) }
                    @match &field.kind {
                        InputKind::Text => { input type="text" id=(field.name) name=(field.name) value=(field.value) autocomplete="off" spellcheck="false"; }
                        InputKind::Known(known) => {
                            @let list = format!("{}-known", field.name);
                            input type="text" id=(field.name) name=(field.name) value=(field.value) list=(list) autocomplete="off" spellcheck="false";
                            datalist id=(list) { @for value in *known { option value=(value) {} } }
                        }
                        InputKind::Date => { input type="date" id=(field.name) name=(field.name) value=(field.value); }
                        InputKind::One(values) => {
                            select id=(field.name) name=(field.name) {
                                @for (value, name) in *values {
                                    option value=(value) selected[*value == field.value] { (name) }
                                }
                            }
                        }
                    }
                }
            }
            div.do { button type="submit" { "Show" } a href=(path) { "Reset" } }
        }
    }
}
