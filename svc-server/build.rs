//! Takes what `/docs` serves of Swagger UI out of the archive of its crate. Nothing is fetched.

use std::error::Error;
use std::fs::File;
use std::io::{Cursor, copy};
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED;
use zip::ZipArchive;

/// The files, by what their names end with in the archive. Its folder is called after its version.
const FILES: [&str; 2] = ["/dist/swagger-ui.css", "/dist/swagger-ui-bundle.js"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let folder = PathBuf::from(std::env::var("OUT_DIR")?);
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
