//! The order that no compiler keeps: which folder of the store may use which.

use std::fs;
use std::path::{Path, PathBuf};

/// The folders of the store. Each may use itself and those before it.
const FOLDERS: [&str; 6] = ["sql", "pack", "table", "read", "write", "backup"];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns the product code of a file: what stands before its tests.
fn product(file: &Path) -> String {
    let text = fs::read_to_string(file).expect("a text");
    let end = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
    let lines = text[..end].lines();
    let code = lines.filter(|line| !line.trim_start().starts_with("//"));
    code.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_folder_of_the_store_uses_only_itself_and_those_beneath() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../svc-engine/store/src");
    let mut wrong = Vec::new();
    for (place, folder) in FOLDERS.into_iter().enumerate() {
        let mut all = Vec::new();
        files(&source.join(folder), &mut all);
        assert!(all.len() > 5, "{folder}");
        for file in all {
            let code = product(&file);
            for above in &FOLDERS[place + 1..] {
                if code.contains(&format!("crate::{above}::")) {
                    wrong.push(format!("{} uses {above}", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
