//! What stands beside a file of vectors that others are to go on with: which rows of which input it has,
//! made with what, and the hashes of its files.
//!
//! * `OUT.manifest.json`: the [`Manifest`];
//! * `OUT.hashes`: the first 16 bytes of the SHA-256 of each row's text, one behind the other.

use super::made_with::MadeWith;
use super::shard::{InputId, Shard, hex};
use super::texts::TextForm;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use weighbridge_format::plan::{FilePlan, Piece};
use weighbridge_format::source::is_plain_name;
use weighbridge_format::{Advice, Error, Progress};

/// A larger one is none of ours.
const LARGEST: u64 = 64 << 20;

/// What a file of vectors is. Its JSON is described in docs/json.md.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Manifest {
    /// The version of this description.
    pub manifest: u32,
    /// What the rows were made with.
    pub made_with: MadeWith,
    /// What they were made from, and what is kept with them.
    pub form: TextForm,
    /// The whole input, where it is known.
    pub input: Option<InputId>,
    /// Which of its rows are here; all where nothing is said.
    pub shard: Option<Shard>,
    /// How many rows are here.
    pub rows: u64,
    /// The files and their hashes, the one with the vectors first.
    #[serde(default, skip_serializing)]
    pub files: Vec<HashedFile>,
}

/// A file beside a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HashedFile {
    /// Its name in the same folder.
    pub name: String,
    /// SHA-256 of its bytes, in hexadecimal digits.
    pub sha256: String,
}

impl Manifest {
    pub(super) const VERSION: u32 = 1;

    /// Where the manifest of a file of vectors is.
    pub fn path_for(output: &Path) -> PathBuf {
        beside(output, ".manifest.json")
    }

    /// Where the hashes of its texts are.
    pub fn hashes_for(output: &Path) -> PathBuf {
        beside(output, ".hashes")
    }

    /// Reads the manifest of a file of vectors.
    ///
    /// # Errors
    /// [`Error::Refused`] if it has none, or one that makes no sense; failures of the system.
    pub fn of(output: &Path) -> Result<Manifest, Error> {
        let path = Manifest::path_for(output);
        let advice = Advice::set("manifest", "makes one while texts are embedded");
        let Some(text) = read_bounded(&path)? else {
            return Err(Error::refused_file(output, "has no manifest beside it", advice));
        };
        let refused = |what: &str| Error::refused_file(&path, what, advice.clone());
        let manifest: Manifest = serde_json::from_slice(&text)
            .map_err(|e| refused(&format!("is no manifest of vectors: {e}")))?;
        if manifest.manifest != Manifest::VERSION {
            return Err(refused("is of a later version"));
        }
        let shard = manifest.shard;
        if shard.is_some_and(|shard| Shard::new(shard.number, shard.of).is_none())
            || manifest.files.is_empty()
            || !manifest.files.iter().all(|file| is_plain_name(&file.name))
        {
            return Err(refused("makes no sense"));
        }
        Ok(manifest)
    }

    /// Compares the files beside a manifest with what it says of them. Bytes are counted.
    ///
    /// # Errors
    /// [`Error::Refused`] that names the file that differs; failures of the system;
    /// [`Error::Cancelled`].
    pub fn check_files(&self, output: &Path, progress: &mut Progress) -> Result<(), Error> {
        for file in &self.files {
            let path = output.with_file_name(&file.name);
            if hash_file(&path, progress)? != file.sha256 {
                let what = "is not what its manifest says: another hash";
                let help = "it was changed or damaged since; make it anew";
                return Err(Error::refused_file(&path, what, help));
            }
        }
        Ok(())
    }

    /// How many bytes its files have together, as far as they are there.
    pub(super) fn bytes(&self, output: &Path) -> u64 {
        let size = |file: &HashedFile| output.with_file_name(&file.name).metadata().ok();
        self.files.iter().filter_map(size).map(|file| file.len()).sum()
    }

    /// The planned file of it, behind the files that it tells of.
    pub(super) fn plan(&self, output: &Path, files: &[FilePlan]) -> FilePlan {
        let mut plan = FilePlan::named(name_of(&Manifest::path_for(output)));
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        // The members of before stay as they are; the hashes are known when the files are written.
        let mut text = text.trim_end_matches(['\n', '}']).to_owned() + ",\n  \"files\": [";
        for (number, file) in files.iter().enumerate() {
            let name = file.beside.clone().unwrap_or_else(|| name_of(output));
            let comma = if number > 0 { "," } else { "" };
            let name = serde_json::Value::from(name);
            text.push_str(&format!("{comma}\n    {{\"name\": {name}, \"sha256\": \""));
            plan.push(Piece::Bytes(std::mem::take(&mut text).into_bytes()));
            plan.push(Piece::Sha256OfFile { file: number });
            text.push_str("\"}");
        }
        text.push_str("\n  ]\n}\n");
        plan.push(Piece::Bytes(text.into_bytes()));
        plan
    }
}

/// The name of a file without its folder.
pub(super) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn beside(output: &Path, ending: &str) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// The bytes of a file that may not be there.
fn read_bounded(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let file = match File::open(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(|e| Error::io(path, e))?,
    };
    let mut text = Vec::new();
    file.take(LARGEST).read_to_end(&mut text).map_err(|e| Error::io(path, e))?;
    Ok(Some(text))
}

fn hash_file(path: &Path, progress: &mut Progress) -> Result<String, Error> {
    let io = |e| Error::io(path, e);
    let (mut file, mut hash) = (File::open(path).map_err(io)?, Sha256::new());
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer).map_err(io)? {
            0 => return Ok(hex(&hash.finalize())),
            n => {
                hash.update(&buffer[..n]);
                progress.advance(n as u64)?;
            }
        }
    }
}
