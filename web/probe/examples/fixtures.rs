//! Writes every fixture as a bundle, and beside it what is said of it here.

use std::path::Path;
use weighbridge::{Formats, samples};
use weighbridge_probe::{Bundle, tell};
use weighbridge_testkit::fixtures;

fn main() {
    let folder = std::env::args().nth(1).expect("a folder to write into");
    let mut bundles: Vec<(String, Bundle)> = Vec::new();
    for f in fixtures() {
        let name = format!("{}-{}", f.format, f.content.replace(' ', "-"));
        let bundle =
            Bundle { name: f.name, is_folder: f.is_folder, main: f.main, beside: f.beside };
        bundles.push((name, bundle));
    }
    let beside = samples::encoder_directory().expect("the sample is made");
    let encoder =
        Bundle { name: "encoder".to_owned(), is_folder: true, beside, ..Bundle::default() };
    bundles.push(("encoder".to_owned(), encoder));
    assert!(bundles.len() > Formats::builtin().iter().count() * 3);
    for (name, bundle) in bundles {
        let path = Path::new(&folder).join(&name);
        std::fs::write(&path, bundle.to_bytes()).expect("a bundle is written");
        let told = tell(bundle).to_string();
        std::fs::write(path.with_extension("json"), told).expect("an answer is written");
    }
}
