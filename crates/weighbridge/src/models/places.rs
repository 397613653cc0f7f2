//! Where models are looked for.

use super::files::{check_folder, lacks};
use super::layout::{Snapshot, folder_of, repo_of, snapshot};
use super::name::{Name, closest};
use crate::{Advice, Error};
use std::path::{Path, PathBuf};

/// The folder of a model that was given by a path or a name. A path that exists wins. Models of
/// other architectures than BERT's are refused by name.
///
/// # Errors
/// [`Error::NotFound`] if there is none, [`Error::Unsupported`] if it can't be used here.
pub fn find(model: impl AsRef<Path>) -> Result<PathBuf, Error> {
    let path = model.as_ref();
    if path.exists() {
        check_folder(&path.display().to_string(), path)?;
        return Ok(path.to_owned());
    }
    Places::from_env()?.find(path)
}

/// The folders that hold models on this machine.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Places {
    /// Our own: `WEIGHBRIDGE_CACHE`, else `weighbridge` in the user's cache folder.
    pub cache: PathBuf,
    /// The hub's: `HF_HUB_CACHE`, else `hub` in `HF_HOME`, else `huggingface/hub` in the user's
    /// cache folder.
    pub hub_cache: PathBuf,
}

impl Places {
    /// These folders.
    pub fn new(cache: impl Into<PathBuf>, hub_cache: impl Into<PathBuf>) -> Places {
        Places { cache: cache.into(), hub_cache: hub_cache.into() }
    }

    /// Those that the environment names.
    ///
    /// # Errors
    /// Where it names none and there is no home.
    pub fn from_env() -> Result<Places, Error> {
        let get = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        Places::from_variables(get, std::env::home_dir())
    }

    fn from_variables(
        get: impl Fn(&str) -> Option<PathBuf>,
        home: Option<PathBuf>,
    ) -> Result<Places, Error> {
        // The hub's own library takes `~` for the home folder in its variables.
        let get = |name: &str| {
            let path = get(name)?;
            let below = path.strip_prefix("~").ok().zip(home.as_ref()).map(|(p, h)| h.join(p));
            Some(below.unwrap_or(path))
        };
        let user =
            || match get("XDG_CACHE_HOME").or_else(|| home.as_ref().map(|h| h.join(".cache"))) {
                Some(path) => Ok(path),
                None => Err(Error::refused(
                    "there is no home folder to look for models in",
                    "set WEIGHBRIDGE_CACHE and HF_HUB_CACHE to folders",
                )),
            };
        let cache = match get("WEIGHBRIDGE_CACHE") {
            Some(path) => path,
            None => user()?.join("weighbridge"),
        };
        // The second name is the older one.
        let hub_cache = get("HF_HUB_CACHE").or_else(|| get("HUGGINGFACE_HUB_CACHE"));
        let hub_cache = match hub_cache.or_else(|| get("HF_HOME").map(|p| p.join("hub"))) {
            Some(path) => path,
            None => user()?.join("huggingface").join("hub"),
        };
        Ok(Places { cache, hub_cache })
    }

    /// The folder of a model by its name.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none, [`Error::Unsupported`] if it can't be used here.
    pub fn find(&self, model: impl AsRef<Path>) -> Result<PathBuf, Error> {
        let text = model.as_ref().to_string_lossy();
        let Ok(name) = Name::parse(&text) else {
            let what = format!("there is no file or folder {text}");
            let advice = "names of models are like minilm or org/repo";
            return Err(Error::not_found(text, what, advice));
        };
        let mut looked = vec![format!("{text} as a path")];
        let found = self.own(&name, &mut looked).or_else(|| self.hubs(&name, None, &mut looked));
        match found {
            Some(path) => check_folder(name.shown(), &path).map(|()| path),
            None => {
                let what = format!("there is no model {text:?}; looked at {}", looked.join(", "));
                Err(Error::not_found(name.text, what, self.advice(&name)))
            }
        }
    }

    fn models(&self) -> PathBuf {
        self.cache.join("models")
    }

    /// Where a model is put.
    pub(super) fn target(&self, name: &Name) -> PathBuf {
        self.models().join(name.folder())
    }

    /// A whole model in our own cache; `looked` gets what was looked at.
    pub(super) fn own(&self, name: &Name, looked: &mut Vec<String>) -> Option<PathBuf> {
        // A known model may have been put there by hand under its other name.
        let names = [name.folder(), name.repo().replace('/', "--")];
        let distinct = if names[0] == names[1] { 1 } else { 2 };
        names.into_iter().take(distinct).map(|folder| self.models().join(folder)).find(|path| {
            let why = lacks(path);
            looked.push(with_reason(path, why.as_deref().filter(|_| path.is_dir())));
            why.is_none()
        })
    }

    /// A whole model in the hub's cache; `looked` gets what was looked at.
    pub(super) fn hubs(
        &self,
        name: &Name,
        revision: Option<&str>,
        looked: &mut Vec<String>,
    ) -> Option<PathBuf> {
        let folder = folder_of(&self.hub_cache, name.repo());
        match snapshot(&self.hub_cache, name.repo(), revision) {
            Snapshot::Whole(path) => return Some(path),
            Snapshot::Lacking(why) => looked.push(with_reason(&folder, Some(&why))),
            Snapshot::Absent => looked.push(with_reason(&folder, None)),
        }
        None
    }

    fn advice(&self, name: &Name) -> Advice {
        if let Some(meant) = closest(name.text, &self.present()).filter(|m| m != name.text) {
            return format!("is {meant} meant?").into();
        }
        // Models that no package has come from the network, which is asked for.
        let network = name.known.is_none();
        Advice::Pull { model: name.shown().to_owned(), network }.and("or give a path")
    }

    /// The name that was probably meant instead of one that nothing has.
    pub(super) fn meant(&self, name: &Name) -> Option<String> {
        closest(name.text, &self.present())
            .filter(|meant| name.known.is_none() && meant != name.text)
    }

    /// Names of the models in both caches.
    fn present(&self) -> Vec<String> {
        let names = |folder: &Path| {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            let folders = entries.filter(|entry| entry.path().is_dir());
            folders.filter_map(|e| e.file_name().into_string().ok()).collect::<Vec<_>>()
        };
        let own = names(&self.models()).into_iter().map(|name| name.replacen("--", "/", 1));
        let hubs = names(&self.hub_cache);
        let mut all: Vec<_> = own.chain(hubs.iter().filter_map(|name| repo_of(name))).collect();
        all.sort();
        all
    }
}

fn with_reason(path: &Path, why: Option<&str>) -> String {
    match why {
        Some(why) => format!("{} ({why})", path.display()),
        None => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(variables: &[(&str, &str)], home: Option<&str>) -> Result<Places, Error> {
        let get = |name: &str| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| PathBuf::from(value))
        };
        Places::from_variables(get, home.map(PathBuf::from))
    }

    #[test]
    fn variables_name_the_folders() {
        let check = |variables: &[(&str, &str)], cache: &str, hub: &str| {
            let found = places(variables, Some("/home/me")).unwrap();
            assert_eq!((found.cache, found.hub_cache), (cache.into(), hub.into()));
        };
        let (ours, hubs) = ("/home/me/.cache/weighbridge", "/home/me/.cache/huggingface/hub");
        check(&[], ours, hubs);
        check(&[("XDG_CACHE_HOME", "/x")], "/x/weighbridge", "/x/huggingface/hub");
        check(&[("WEIGHBRIDGE_CACHE", "/w"), ("HF_HOME", "/h")], "/w", "/h/hub");
        check(&[("HF_HOME", "/h"), ("HF_HUB_CACHE", "~/c")], ours, "/home/me/c");
        check(&[("HUGGINGFACE_HUB_CACHE", "/old")], ours, "/old");
    }

    #[test]
    fn without_a_home_the_variables_are_needed() {
        assert!(places(&[("WEIGHBRIDGE_CACHE", "/w")], None).is_err());
        let both = [("WEIGHBRIDGE_CACHE", "/w"), ("HF_HOME", "/h")];
        assert_eq!(places(&both, None).unwrap().cache, Path::new("/w"));
    }
}
