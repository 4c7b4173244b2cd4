//! A token is in its header and nowhere else.

use std::error::Error;
use std::fmt::Write as _;

use svc_client::testing::{Answer, FakeServer};
use svc_client::{BaseUrlError, BuildError, Client, RetryPolicy};

const TOKEN: &str = "correct-horse-battery-staple-0";

fn everything(error: &dyn Error) -> String {
    let mut text = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(cause) = source {
        write!(text, " {cause} {cause:?}").expect("a string takes everything");
        source = cause.source();
    }
    text
}

#[tokio::test]
async fn no_debug_form_and_no_error_contains_the_token() {
    let builder = Client::builder("http://127.0.0.1:1")
        .token(TOKEN)
        .retry(RetryPolicy::none());
    assert!(!format!("{builder:?}").contains(TOKEN));
    let client = builder.build().unwrap();
    assert!(!format!("{client:?}").contains(TOKEN));
    assert!(format!("{client:?}").contains("REDACTED"));
    assert!(!everything(&client.me().await.unwrap_err()).contains(TOKEN));

    for answer in [
        Answer::text(401, TOKEN),
        Answer::text(200, TOKEN),
        Answer::closed(),
    ] {
        let server = FakeServer::start([answer]);
        let client = Client::builder(server.url()).token(TOKEN).build().unwrap();
        assert!(!everything(&client.me().await.unwrap_err()).contains(TOKEN));
    }
}

#[tokio::test]
async fn an_error_does_not_repeat_the_request() {
    let session = svc_client::model::id::SessionId::new("a-private-name").unwrap();
    let server = FakeServer::start([Answer::closed()]);
    let client = server
        .client()
        .with_timeout(std::time::Duration::from_millis(200));
    let error = client.evidence().inventory(&session).await.unwrap_err();
    assert!(!everything(&error).contains("a-private-name"));
    let asked = server.received();
    assert!(
        asked
            .iter()
            .any(|request| request.target.contains("a-private-name"))
    );
}

#[test]
fn a_url_that_holds_a_password_is_not_repeated() {
    let error = Client::builder("https://me:correct-horse@svc.example")
        .build()
        .unwrap_err();
    assert!(matches!(error, BuildError::Url(BaseUrlError::UserInfo)));
    assert!(!everything(&error).contains("correct-horse"));
    let builder = Client::builder("https://me:correct-horse@svc.example");
    assert!(!format!("{builder:?}").contains("correct-horse"));
}

#[test]
fn a_token_that_no_header_can_hold_is_refused_without_repeating_it() {
    for token in ["", "two words", "line\nbreak", "caf\u{e9}"] {
        let error = Client::builder("https://svc.example")
            .token(token)
            .build()
            .unwrap_err();
        assert!(matches!(error, BuildError::Token));
        assert!(token.is_empty() || !everything(&error).contains(token));
    }
}
