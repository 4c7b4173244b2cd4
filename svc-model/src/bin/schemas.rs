//! Writes the published schemas, or checks that the checked-in files are up to date.
//!
//! ```text
//! cargo schemas write [DIR]
//! cargo schemas check [DIR]
//! ```
//!
//! Without `DIR`, the files are those in `schemas/` of the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fmt, fs};

use svc_model::openapi;

const USAGE: &str = "usage: schemas write [DIR] | schemas check [DIR]";

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let mode = arguments.next();
    let directory = arguments.next().map_or_else(checked_in, PathBuf::from);
    let (mut out, mut err) = (io::stdout().lock(), io::stderr().lock());
    let result = match (
        mode.as_ref().and_then(|mode| mode.to_str()),
        arguments.next(),
    ) {
        (Some("write"), None) => write(&directory, &mut out).map(|()| ExitCode::SUCCESS),
        (Some("check"), None) => check(&directory, &mut out),
        _ => writeln!(err, "{USAGE}").map(|()| ExitCode::from(2)),
    };
    result.unwrap_or_else(|error| {
        // If nothing can be written, only the exit code can tell.
        let _unheard = writeln!(err, "cannot use {}: {error}", directory.display());
        ExitCode::FAILURE
    })
}

/// Returns the directory with the checked-in files.
fn checked_in() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).join("schemas")
}

/// How a file differs from the published schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Difference {
    Missing,
    Differs,
    Extra,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "missing",
            Self::Differs => "differs",
            Self::Extra => "extra",
        })
    }
}

/// Compares the JSON files of a directory with those that are published.
fn differences(
    directory: &Path,
    documents: &BTreeMap<String, String>,
) -> io::Result<BTreeMap<String, Difference>> {
    let mut found = BTreeMap::new();
    let mut present = BTreeSet::new();
    for name in json_files(directory)? {
        match (
            name.to_str(),
            name.to_str().and_then(|name| documents.get(name)),
        ) {
            (Some(name), Some(text)) => {
                present.insert(name.to_owned());
                if fs::read(directory.join(name))? != text.as_bytes() {
                    found.insert(name.to_owned(), Difference::Differs);
                }
            }
            _ => drop(found.insert(name.to_string_lossy().into_owned(), Difference::Extra)),
        }
    }
    let missing = documents.keys().filter(|name| !present.contains(*name));
    found.extend(missing.map(|name| (name.clone(), Difference::Missing)));
    Ok(found)
}

fn json_files(directory: &Path) -> io::Result<Vec<OsString>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        if Path::new(&name)
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            names.push(name);
        }
    }
    Ok(names)
}

/// Brings the JSON files of a directory up to date.
fn write(directory: &Path, out: &mut impl io::Write) -> io::Result<()> {
    let documents = openapi::documents();
    fs::create_dir_all(directory)?;
    let differences = differences(directory, &documents)?;
    for (name, difference) in &differences {
        let path = directory.join(name);
        match documents.get(name) {
            Some(text) => fs::write(path, text)?,
            None => fs::remove_file(path)?,
        }
        let done = match difference {
            Difference::Missing | Difference::Differs => "wrote",
            Difference::Extra => "removed",
        };
        writeln!(out, "{done} {name}")?;
    }
    let unchanged = documents
        .keys()
        .filter(|name| !differences.contains_key(*name))
        .count();
    writeln!(out, "{unchanged} unchanged in {}", directory.display())
}

/// Reports how a directory differs from the published schemas, and how to fix it.
fn check(directory: &Path, out: &mut impl io::Write) -> io::Result<ExitCode> {
    let differences = differences(directory, &openapi::documents())?;
    for (name, difference) in &differences {
        writeln!(out, "{difference}: {name}")?;
    }
    if differences.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(
        out,
        "the schemas in {} are not up to date; run: cargo schemas write",
        directory.display()
    )?;
    Ok(ExitCode::FAILURE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checked_in_schemas_are_up_to_date() {
        let differences = differences(&checked_in(), &openapi::documents()).unwrap();
        assert!(
            differences.is_empty(),
            "{differences:?}; run: cargo schemas write"
        );
    }

    #[test]
    fn each_kind_of_difference_is_found_and_mended() {
        let directory = env::temp_dir().join(format!("svc-schemas-{}", std::process::id()));
        write(&directory, &mut io::sink()).unwrap();
        assert_eq!(
            check(&directory, &mut io::sink()).unwrap(),
            ExitCode::SUCCESS
        );

        fs::remove_file(directory.join("index.json")).unwrap();
        fs::write(directory.join("openapi.json"), "{}").unwrap();
        fs::write(directory.join("Former.json"), "{}").unwrap();
        fs::write(directory.join("notes.md"), "kept").unwrap();
        let mut report = Vec::new();
        assert_eq!(check(&directory, &mut report).unwrap(), ExitCode::FAILURE);
        let report = String::from_utf8(report).unwrap();
        assert!(
            report.starts_with("extra: Former.json\nmissing: index.json\ndiffers: openapi.json\n")
        );
        assert!(report.contains("cargo schemas write"));

        write(&directory, &mut io::sink()).unwrap();
        assert_eq!(
            check(&directory, &mut io::sink()).unwrap(),
            ExitCode::SUCCESS
        );
        assert!(directory.join("notes.md").exists());
        fs::remove_dir_all(&directory).unwrap();
    }
}
