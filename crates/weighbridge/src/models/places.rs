//! Where models are looked for.

use super::built_in::built_in;
use super::files::{check_folder, lacks};
use super::layout::{Snapshot, folder_of, snapshot};
use super::name::{Name, closest};
use super::workspace;
use crate::{Advice, Error, Formats, Listing};
use std::io;
use std::path::{Path, PathBuf};

/// Where something is that was given by a path or by the name of a model: the one place that decides
/// which it is. A path that exists wins.
///
/// # Errors
/// [`Error::NotFound`] if there is neither, failures of the system.
pub fn locate(given: impl AsRef<Path>) -> Result<PathBuf, Error> {
    let path = given.as_ref();
    match std::fs::metadata(path) {
        Ok(_) => Ok(path.to_owned()),
        Err(e) if e.kind() != io::ErrorKind::NotFound || is_named_as_a_file(path) => {
            Err(Error::io(path, e))
        }
        Err(_) => {
            let places = Places::from_env();
            // It needs no folder that models would be looked for in.
            let is_built_in = built_in().is_some_and(|name| path == Path::new(name));
            let look =
                |places: Places| places.look(&path.to_string_lossy(), "file, folder or model");
            let found = match places.and_then(look) {
                Err(_) if is_built_in => Ok(path.to_owned()),
                found => found,
            };
            found.map_err(|error| match error {
                Error::NotFound(problem) => Error::NotFound(Box::new(problem.in_file(path))),
                other => other,
            })
        }
    }
}

/// The folder or file of a model for the encoder, which was given by a path or a name. Models of
/// other architectures than BERT's are refused by name.
///
/// # Errors
/// [`Error::NotFound`] if there is none, [`Error::Unsupported`] if it can't be used here.
pub fn find(model: impl AsRef<Path>) -> Result<PathBuf, Error> {
    let path = locate(&model)?;
    check_folder(&model.as_ref().display().to_string(), &path)?;
    Ok(path)
}

/// Whether a name ends as files of some format do, which no name of a model does.
fn is_named_as_a_file(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    Formats::builtin().iter().flat_map(|f| f.info().extensions).any(|e| extension == *e)
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
            let path = below.unwrap_or(path);
            // Programs that fetch models are started in other folders.
            Some(std::path::absolute(&path).unwrap_or(path))
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
    /// [`Error::NotFound`] if there is none.
    pub fn locate(&self, model: impl AsRef<Path>) -> Result<PathBuf, Error> {
        self.look(&model.as_ref().to_string_lossy(), "model")
    }

    /// The same; `what` is what there is none of otherwise.
    fn look(&self, text: &str, what: &str) -> Result<PathBuf, Error> {
        let Ok(name) = Name::parse(text) else {
            let message = format!("there is no {what} {text:?}");
            let advice = "names of models are like minilm or org/repo";
            return Err(Error::not_found(text, message, advice));
        };
        let mut looked = Vec::new();
        let found = self.own(&name, &mut looked).or_else(|| self.hubs(&name, None, &mut looked));
        // It may lie where a process that was killed had set it aside.
        let is_back =
            || workspace::bring_back(&self.cache).then(|| self.own(&name, &mut Vec::new()));
        found.or_else(|| is_back().flatten()).ok_or_else(|| {
            let looked = looked.join(", ");
            let message = format!("there is no {what} {text:?}; models are looked for in {looked}");
            Error::not_found(text, message, self.advice(&name))
        })
    }

    /// The folder of a model that the encoder can use, by its name.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none, [`Error::Unsupported`] if it can't be used here.
    pub fn find(&self, model: impl AsRef<Path>) -> Result<PathBuf, Error> {
        let path = self.locate(&model)?;
        check_folder(&model.as_ref().to_string_lossy(), &path)?;
        Ok(path)
    }

    /// The folder in our cache that has the models.
    pub(super) fn models(&self) -> PathBuf {
        self.cache.join("models")
    }

    /// Where a model is put.
    pub(super) fn target(&self, name: &Name) -> PathBuf {
        self.models().join(name.folder())
    }

    /// The folders that a model may have in our own cache.
    pub(super) fn own_folders(&self, name: &Name) -> impl Iterator<Item = PathBuf> {
        // A known model may have been put there by hand under its other name.
        let names = [name.folder(), name.repo().replace('/', "--")];
        let distinct = if names[0] == names[1] { 1 } else { 2 };
        let models = self.models();
        names.into_iter().take(distinct).map(move |folder| models.join(folder))
    }

    /// Where is remembered where a model came from.
    pub(super) fn record(&self, name: &Name) -> PathBuf {
        self.cache.join("origins").join(format!("{}.json", name.folder()))
    }

    /// A whole model in our own cache; `looked` gets what was looked at.
    pub(super) fn own(&self, name: &Name, looked: &mut Vec<String>) -> Option<PathBuf> {
        self.own_folders(name).find(|path| {
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
        let present = self.names();
        if let Some(meant) = closest(name.text, &present).filter(|m| m != name.text) {
            return Advice::Meant { names: vec![meant] };
        }
        // Models that no package has come from the network, which is asked for.
        let pull = Advice::Pull { model: name.shown().to_owned(), network: name.known.is_none() };
        held(&present).and(pull)
    }

    /// The name that was probably meant instead of one that nothing has.
    pub(super) fn meant(&self, name: &Name) -> Option<String> {
        closest(name.text, &self.names()).filter(|meant| name.known.is_none() && meant != name.text)
    }

    /// Names of the whole models in both caches, in order.
    pub fn names(&self) -> Vec<String> {
        let whole = self.list().into_iter().filter(|model| model.lacks.is_none());
        let mut names: Vec<_> = whole.map(|model| model.name).collect();
        names.dedup();
        names
    }
}

/// What the caches hold.
fn held(names: &[String]) -> Advice {
    const NAMED: usize = 5;
    if names.is_empty() {
        return "there are no models on this machine yet".into();
    }
    let first: Vec<_> = names.iter().take(NAMED).map(String::as_str).collect();
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let text = format!("the models on this machine are {}{more}", first.join(", "));
    Advice::from(text).and(Advice::See(Listing::Models))
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
        let here = std::env::current_dir().unwrap().join("w");
        check(&[("WEIGHBRIDGE_CACHE", "w")], &here.to_string_lossy(), hubs);
    }

    #[test]
    fn without_a_home_the_variables_are_needed() {
        assert!(places(&[("WEIGHBRIDGE_CACHE", "/w")], None).is_err());
        let both = [("WEIGHBRIDGE_CACHE", "/w"), ("HF_HOME", "/h")];
        assert_eq!(places(&both, None).unwrap().cache, Path::new("/w"));
    }
}
