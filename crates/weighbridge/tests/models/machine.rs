//! A machine with caches of its own.

use crate::{COMMIT, sha256};
use std::path::{Path, PathBuf};
use weighbridge::Error;
use weighbridge::Progress;
use weighbridge::models::{Hub, Places, PullSettings, Pulled, pull};

/// A machine with empty caches that reaches a server.
pub(crate) struct Machine {
    pub folder: tempfile::TempDir,
    pub request: PullSettings,
}

impl Machine {
    pub(crate) fn new(endpoint: &str) -> Machine {
        let folder = tempfile::tempdir().unwrap();
        let places = Places::new(folder.path().join("ours"), folder.path().join("hub"));
        let mut request = PullSettings::new(places, Hub::new(endpoint));
        request.network = true;
        Machine { folder, request }
    }

    /// Without a server.
    pub(crate) fn alone() -> Machine {
        let mut machine = Machine::new("http://127.0.0.1:1");
        machine.request.network = false;
        machine
    }

    pub(crate) fn pull(&self, name: &str) -> Result<Pulled, Error> {
        pull(name, &self.request)?.write(&mut Progress::none())
    }

    pub(crate) fn refused(&self, name: &str) -> String {
        let error = self.pull(name).unwrap_err().to_string();
        self.is_clean();
        error
    }

    pub(crate) fn find(&self, name: &str) -> Result<PathBuf, Error> {
        self.request.places.find(name)
    }

    /// Nothing that is not finished is there, under whatever name.
    pub(crate) fn is_clean(&self) {
        let ours = self.folder.path().join("ours");
        let count = |name: &str| std::fs::read_dir(ours.join(name)).map_or(0, |list| list.count());
        assert_eq!((count("models"), count("partial"), count("origins")), (0, 0, 0));
    }
}

/// A model in the hub's cache, with links into blobs where there are links.
pub(crate) fn put_in_hub_cache(
    machine: &Machine,
    repo: &str,
    files: &[(String, Vec<u8>)],
) -> PathBuf {
    let model =
        machine.folder.path().join("hub").join(format!("models--{}", repo.replace('/', "--")));
    let snapshot = model.join("snapshots").join(COMMIT);
    std::fs::create_dir_all(model.join("blobs")).unwrap();
    std::fs::create_dir_all(model.join("refs")).unwrap();
    std::fs::write(model.join("refs/main"), COMMIT).unwrap();
    for (name, bytes) in files {
        let (blob, path) = (model.join("blobs").join(sha256(bytes)), snapshot.join(name));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&blob, bytes).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(&blob, &path).unwrap();
        #[cfg(not(unix))]
        std::fs::copy(&blob, &path).unwrap();
    }
    snapshot
}

pub(crate) fn same_files(folder: &Path, files: &[(String, Vec<u8>)]) {
    for (name, bytes) in files {
        assert_eq!(std::fs::read(folder.join(name)).unwrap(), *bytes, "{name}");
        assert!(!folder.join(name).is_symlink());
    }
}
