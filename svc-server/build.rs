//! Takes what `/docs` serves of Swagger UI out of the archive of its crate, and lists the published
//! schemas. Nothing is fetched.

use std::error::Error;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Cursor, copy};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED;
use zip::ZipArchive;

/// The files, by what their names end with in the archive. Its folder is called after its version.
const FILES: [&str; 2] = ["/dist/swagger-ui.css", "/dist/swagger-ui-bundle.js"];

/// The files beside the schemas: their list, and the OpenAPI documents.
const OTHERS: [&str; 3] = ["index.json", "openapi.json", "openapi-3.0.json"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let folder = PathBuf::from(std::env::var("OUT_DIR")?);
    take_swagger_ui(&folder)?;
    list_schemas(&folder)
}

/// Writes an expression for all schemas, ordered by name.
fn list_schemas(folder: &Path) -> Result<(), Box<dyn Error>> {
    let schemas = Path::new(env!("CARGO_MANIFEST_DIR")).join("../schemas");
    println!("cargo::rerun-if-changed={}", schemas.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(&schemas)? {
        let file = entry?.file_name().into_string().map_err(|_| "a name")?;
        if !OTHERS.contains(&file.as_str())
            && let Some(name) = file.strip_suffix(".json")
        {
            names.push(name.to_owned());
        }
    }
    names.sort();
    let mut list = String::from("&[\n");
    for name in names {
        let file = schemas.join(format!("{name}.json"));
        let file = file.to_str().ok_or("a path")?;
        writeln!(
            list,
            "PublishedSchema {{ name: {name:?}, path: \"/schemas/1/{name}.json\", text: include_str!({file:?}) }},",
        )?;
    }
    list.push(']');
    Ok(fs::write(folder.join("schemas.rs"), list)?)
}

fn take_swagger_ui(folder: &Path) -> Result<(), Box<dyn Error>> {
    let mut archive = ZipArchive::new(Cursor::new(SWAGGER_UI_VENDORED))?;
    for wanted in FILES {
        // One level deep: the archive has other editions of the same files below.
        let depth = wanted.matches('/').count();
        let name = archive
            .file_names()
            .filter_map(Result::ok)
            .find(|name| name.ends_with(wanted) && name.matches('/').count() == depth)
            .ok_or_else(|| format!("no {wanted}"))?
            .into_owned();
        let mut file = archive.by_name(&name)?;
        let short = wanted.rsplit('/').next().unwrap_or(wanted);
        let written = File::create(folder.join(format!("{short}.gz")))?;
        let mut encoder = GzEncoder::new(written, Compression::best());
        copy(&mut file, &mut encoder)?;
        encoder.finish()?;
    }
    Ok(())
}
