//! Signing in with the operator's token, and signing out.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use maud::{Markup, html};
use svc_model::identity::Authority;
use svc_model::problem::{Problem, RequiredAuthority};

use super::answer::{ConsoleRequest, Referrer, document, refusal, see_other};
use super::guard::{ForeignForm, Scheme, is_led_from_elsewhere};
use super::layout::{self, Page, Section};
use super::link::Link;
use super::visit::Visit;
use super::{Console, refused};
use crate::log_limit::LogLimit;
use crate::observe;

/// The names of a cookie. One is for encrypted connections, where the browser binds the cookie to
/// this host, and one for plain connections on this machine.
pub(super) struct Cookie {
    https: &'static str,
    loopback: &'static str,
}

pub(super) const SIGNED_IN: Cookie = Cookie {
    https: "__Host-svc-console",
    loopback: "svc-console",
};
/// The maximum bytes of a query that sign-in returns to.
const WAY_BACK_BYTES_MAX: usize = 2_048;

static FAILED: LogLimit = LogLimit::new();

/// Returns the values of a cookie.
pub(super) fn cookies<'h>(headers: &'h HeaderMap, cookie: &Cookie) -> Vec<&'h str> {
    let all = headers.get_all(header::COOKIE).iter();
    all.filter_map(|header| header.to_str().ok())
        .flat_map(|header| header.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(name, _)| *name == cookie.https || *name == cookie.loopback)
        .map(|(_, value)| value)
        .collect()
}

impl Cookie {
    /// Sets the cookie in an answer. Without a time, it lasts until the browser is closed.
    fn set(&self, response: &mut Response, scheme: Scheme, value: &str, seconds: Option<u64>) {
        let (name, more) = match scheme {
            Scheme::Https => (self.https, "; Secure"),
            Scheme::Loopback => (self.loopback, ""),
        };
        let age = seconds.map_or_else(String::new, |seconds| format!("; Max-Age={seconds}"));
        let cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{more}{age}");
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
    }
}

/// Returns the address of the sign-in form, which then continues to a page.
pub(super) fn link(path: &str, query: &str) -> Link {
    let sign_in = Link::to("/console/sign-in");
    match (path, query) {
        ("/console", "") => sign_in,
        (path, "") => sign_in.with("to", path),
        // A longer one, encoded once more, would be too long for a request head, even for this
        // service's.
        (path, query) if query.len() > WAY_BACK_BYTES_MAX => sign_in.with("to", path),
        (path, query) => sign_in.with("to", &format!("{path}?{query}")),
    }
}

/// Shows the sign-in form.
pub(super) async fn form(asked: ConsoleRequest) -> Response {
    let to = form_urlencoded::parse(asked.query.as_bytes())
        .find(|(name, _)| name == "to")
        .and_then(|(_, to)| Link::back(&to));
    if asked.caller.is_some() {
        return see_other(&to.unwrap_or_else(|| Link::to("/console")));
    }
    let led = is_led_from_elsewhere(&asked.headers).then(|| {
        let to = to.clone().unwrap_or_else(|| Link::to("/console"));
        html! {
            p { "You came from another site, so the browser did not send your sign-in. If you have \
                 signed in, " a href=(to) { "continue to the page" } "." }
        }
    });
    show(
        StatusCode::OK,
        to.as_ref(),
        &html! { @if let Some(led) = led { (led) } },
    )
}

fn show(status: StatusCode, to: Option<&Link>, above: &Markup) -> Response {
    let body = html! {
        (above)
        form.sign-in method="post" action="/console/sign-in" {
            @if let Some(to) = to { input type="hidden" name="to" value=(to.as_str()); }
            label for="token" { "Operator token" }
            input #token type="password" name="token" required autocomplete="current-password"
                spellcheck="false" aria-describedby="about";
            p #about .note {
                "Anyone who has this token can read everything in the organization. It is sent \
                 once, and the console does not store it."
            }
            button type="submit" { "Sign in" }
        }
    };
    document(status, Referrer::Here, layout::bare("Sign in", &body))
}

/// Signs in with a token.
pub(super) async fn sign_in(asked: ConsoleRequest) -> Response {
    let Some(console) = asked.app.console.as_ref() else {
        return refusal(&Problem::NotFound, None);
    };
    let scheme = match console.hosts.check_form(&asked.headers) {
        Ok(scheme) => scheme,
        Err(foreign) => return foreign_form(foreign),
    };
    let mut to = None;
    let mut token = None;
    for (name, value) in form_urlencoded::parse(&asked.form) {
        match name.as_ref() {
            "to" => to = Link::back(&value),
            "token" => token = Some(value.trim().to_owned()),
            _ => {}
        }
    }
    let token = token.unwrap_or_default();
    let caller = asked.app.tokens.bearer(token.as_bytes());
    let caller = match caller.filter(|_| !token.is_empty()) {
        Some(caller) if caller.authority == Authority::Operator => caller.clone(),
        other => {
            if let Err(wait) = console.attempts.take(asked.now) {
                return too_often(wait.as_secs() + 1, to.as_ref());
            }
            if let Some(left_out) = FAILED.due() {
                tracing::warn!(left_out, "console.sign_in_failed");
            }
            let problem = match other {
                Some(_) => Problem::Forbidden(RequiredAuthority::Operator),
                None => Problem::Unauthorized,
            };
            let status = crate::problem::status(&problem);
            return show(status, to.as_ref(), &refused::token(&problem));
        }
    };
    asked.place.sender_is_known();
    observe::caller(&caller);
    tracing::info!("console.signed_in");
    // A new id each time, so that nobody can plant one.
    let earlier = cookies(&asked.headers, &SIGNED_IN);
    console.signed_in.end(&earlier, asked.now);
    let id = console.signed_in.begin(caller, asked.now);
    let mut response = see_other(&to.unwrap_or_else(|| Link::to("/console")));
    SIGNED_IN.set(&mut response, scheme, &id, None);
    response
}

fn too_often(seconds: u64, to: Option<&Link>) -> Response {
    let status = StatusCode::TOO_MANY_REQUESTS;
    let mut response = show(status, to, &refused::too_often(seconds));
    let headers = response.headers_mut();
    headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}

fn foreign_form(foreign: ForeignForm) -> Response {
    let body = refused::foreign_form(foreign);
    let page = layout::bare("Not accepted", &body);
    document(StatusCode::FORBIDDEN, Referrer::Never, page)
}

/// Shows the sign-out form.
pub(super) async fn sign_out_form(_: Visit) -> Result<Page, Problem> {
    let body = html! {
        p { "You are signed out automatically after 30 minutes of inactivity, after 12 hours at \
             the latest, and when this server restarts." }
        form.actions method="post" action="/console/sign-out" {
            button type="submit" name="where" value="here" { "Sign out here" }
            button.second type="submit" name="where" value="everywhere" { "Sign out everywhere" }
        }
        p.note { "Everywhere means every browser that has signed in at this server." }
    };
    Ok(Page::new(Section::SignOut, "Sign out", body))
}

/// Signs out.
pub(super) async fn sign_out(asked: ConsoleRequest) -> Response {
    let Some(console) = asked.app.console.as_ref() else {
        return refusal(&Problem::NotFound, None);
    };
    let scheme = match console.hosts.check_form(&asked.headers) {
        Ok(scheme) => scheme,
        Err(foreign) => return foreign_form(foreign),
    };
    if asked.caller.is_some() {
        end(console, &asked);
    }
    let mut response = see_other(&Link::to("/console/sign-in"));
    SIGNED_IN.set(&mut response, scheme, "", Some(0));
    response
}

fn end(console: &Console, asked: &ConsoleRequest) {
    let is_everywhere = form_urlencoded::parse(&asked.form)
        .any(|(name, value)| name == "where" && value == "everywhere");
    if is_everywhere {
        let browsers = console.signed_in.end_all(asked.now);
        tracing::info!(browsers, "console.signed_out_everywhere");
    } else {
        let ids = cookies(&asked.headers, &SIGNED_IN);
        console.signed_in.end(&ids, asked.now);
        tracing::info!("console.signed_out");
    }
}
