//! How the shell reaches a service on another machine.

use std::fs;

use super::first_use::svc;

/// Asks a service that does not exist, and returns what the shell prints.
fn ask(variables: &[(&str, &str)]) -> String {
    let home = tempfile::tempdir().expect("a folder");
    let output = svc(home.path())
        .args(["me", "--url", "http://svc.invalid"])
        .env("SVC_TOKEN", "0123456789abcdef0123456789abcdef")
        .envs(variables.iter().copied())
        .output()
        .expect("svc runs");
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
fn plain_http_to_another_machine_has_to_be_allowed() {
    for refused in [&[][..], &[("SVC_ALLOW_PLAIN_HTTP", "0")]] {
        let output = ask(refused);
        assert!(output.contains("must be https"), "{output}");
        assert!(output.contains("SVC_ALLOW_PLAIN_HTTP=1"), "{output}");
    }
    let output = ask(&[("SVC_ALLOW_PLAIN_HTTP", "1")]);
    assert!(output.contains("cannot be reached"), "{output}");
    let output = ask(&[("SVC_ALLOW_PLAIN_HTTP", "perhaps")]);
    assert!(output.contains("must be 1, true, 0 or false"), "{output}");
}

#[test]
fn a_file_without_valid_root_certificates_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("authority.pem");
    let name = file.to_str().expect("a name in Unicode");
    let variables = [("SVC_ALLOW_PLAIN_HTTP", "1"), ("SVC_CA_FILE", name)];
    assert!(ask(&variables).contains("cannot be read"));
    fs::write(&file, "none").unwrap();
    assert!(ask(&variables).contains("in PEM form"));
    fs::write(
        &file,
        include_str!("../../../svc-client/tests/it/authority.pem"),
    )
    .unwrap();
    assert!(ask(&variables).contains("cannot be reached"));
}
