//! From one format to another, with every loss known before a byte is written.

use crate::words::{give_words, to_explicit};
use std::path::{Path, PathBuf};
use weighbridge_format::model::{Plan, Value};
use weighbridge_format::sink::{self, Progress, RealFiles};
use weighbridge_format::{Container, Error, Format, Input, Options, find, open, table};

/// What to convert and how.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Id of the target format; else the output's extension decides.
    pub to: Option<String>,
    /// Globs of tensor names to keep; all when there are none.
    pub select: Vec<String>,
    /// Globs of tensor names to leave out.
    pub exclude: Vec<String>,
    /// New names of tensors, metadata keys and size variables.
    pub rename: Vec<(String, String)>,
    /// Metadata values to set; they keep the type that they had where the text allows it.
    pub set: Vec<(String, String)>,
    /// A file with a word for each row, one a line.
    pub words: Option<PathBuf>,
    /// Give n-grams in buckets names and rows of their own.
    pub explicit: bool,
    /// Options of the formats, and `dtype` and `from`.
    pub options: Options,
    pub allow_loss: bool,
    /// Replace existing files.
    pub force: bool,
}

/// A conversion that is fully planned, with nothing written yet.
pub struct Conversion {
    pub container: Container,
    pub format: &'static dyn Format,
    pub plan: Plan,
    pub output: PathBuf,
    pub(crate) allow_loss: bool,
    pub(crate) force: bool,
}

impl std::fmt::Debug for Conversion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conversion")
            .field("to", &self.format.info().id)
            .field("output", &self.output)
            .finish()
    }
}

/// Opens the input and plans the output.
pub fn convert(input: &Path, output: &Path, request: &Request) -> Result<Conversion, Error> {
    let format = target_format(output, request.to.as_deref())?;
    let mut container = open(&Input::open(input)?, &request.options)?;
    check_options(&request.options, container.format, format)?;
    transform(&mut container, request)?;
    let plan = format.plan(&container, &request.options)?;
    Ok(Conversion {
        container,
        format,
        plan,
        // Without a `/` behind a folder's name.
        output: output.components().collect(),
        allow_loss: request.allow_loss,
        force: request.force,
    })
}

impl Conversion {
    /// Why it would not be written as things are: a loss, or a file in the way.
    pub fn obstacle(&self) -> Option<Error> {
        if !self.plan.report.losses.is_empty() && !self.allow_loss {
            return Some(Error::Loss(self.plan.report.losses.clone()));
        }
        if self.plan.is_folder {
            return no_folder_for(&self.output).or_else(|| self.folder_in_the_way());
        }
        let companion = self.paths().into_iter().skip(1).find(|p| p.exists());
        if let Some(path) = companion.filter(|_| !self.output.exists() && self.has_neighbours()) {
            let what = format!("{} exists and belongs to another file", path.display());
            return Some(Error::refused(what, "write into another folder"));
        }
        self.paths().iter().find_map(|path| in_the_way(path, self.force))
    }

    /// Other files in the folder that a file beside the output may belong to.
    fn has_neighbours(&self) -> bool {
        let folder = self.output.parent().filter(|p| !p.as_os_str().is_empty());
        let Ok(list) = folder.unwrap_or(Path::new(".")).read_dir() else { return false };
        // Formats of rows share the file that describes them.
        let of_rows =
            table().iter().map(|f| f.info()).filter(|i| i.holds.single && i.holds.records);
        let extensions: Vec<_> = of_rows.flat_map(|i| i.extensions).collect();
        let mut names = list.filter_map(|entry| Some(entry.ok()?.path()));
        names.any(|path| {
            path.extension().is_some_and(|e| extensions.iter().any(|known| e == **known))
        })
    }

    /// A folder is never replaced: it may hold more than what was written into it.
    fn folder_in_the_way(&self) -> Option<Error> {
        if self.output.is_symlink() {
            let what = format!("{} is a link", self.output.display());
            return Some(Error::refused(what, "name a new folder"));
        }
        let is_empty = || self.output.read_dir().is_ok_and(|mut list| list.next().is_none());
        if !self.output.exists() || is_empty() {
            return None;
        }
        let what = format!("{} exists", self.output.display());
        Some(Error::refused(what, "name a new folder, or remove this one first"))
    }

    /// The files that will be written.
    pub fn paths(&self) -> Vec<PathBuf> {
        let folder = self.output.parent().unwrap_or(Path::new(""));
        let folder = if self.plan.is_folder { &self.output } else { folder };
        let path = |f: &weighbridge_format::model::FilePlan| match &f.beside {
            Some(name) => folder.join(name),
            None => self.output.clone(),
        };
        self.plan.files.iter().map(path).collect()
    }

    /// Writes the files, all or none.
    pub fn write(&self, progress: Progress) -> Result<(), Error> {
        if let Some(obstacle) = self.obstacle() {
            return Err(obstacle);
        }
        // What a link points to is replaced, not the link.
        let target = self.output.canonicalize().ok().filter(|_| self.output.is_symlink());
        sink::write(
            &self.plan,
            &target.unwrap_or_else(|| self.output.clone()),
            &RealFiles,
            progress,
        )
    }
}

/// Why a file can't be written there.
pub(crate) fn in_the_way(path: &Path, force: bool) -> Option<Error> {
    if !path.exists() && path.is_symlink() {
        let what = format!("{} is a link to nowhere", path.display());
        return Some(Error::refused(what, "remove it first"));
    }
    if !path.exists() {
        return no_folder_for(path);
    }
    if !path.is_file() {
        let kind = if path.is_dir() { "a folder" } else { "no regular file" };
        return Some(Error::refused(format!("{} is {kind}", path.display()), "name a file"));
    }
    let what = format!("{} exists", path.display());
    (!force).then(|| Error::refused(what, "--force replaces it"))
}

fn no_folder_for(path: &Path) -> Option<Error> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty() && !p.is_dir())?;
    let what = format!("the folder {} does not exist", folder.display());
    Some(Error::refused(what, "make it first"))
}

/// The format that was asked for, else the one that the extension belongs to.
pub(crate) fn target_format(output: &Path, to: Option<&str>) -> Result<&'static dyn Format, Error> {
    let ids = || {
        let writing = table().iter().map(|f| f.info()).filter(|i| i.writes);
        writing.map(|i| i.id).collect::<Vec<_>>().join(" ")
    };
    if let Some(id) = to {
        let known = find(id);
        return known.ok_or_else(|| {
            Error::refused(
                format!("there is no format {id:?}"),
                format!("--to takes one of: {}", ids()),
            )
        });
    }
    // A folder has no extension: it is named as one.
    if output.as_os_str().as_encoded_bytes().ends_with(b"/") {
        let folders: Vec<_> = table().iter().filter(|f| f.info().is_folder).collect();
        if let [one] = folders.as_slice() {
            return Ok(**one);
        }
    }
    let extension = output.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let mut fitting = table().iter().filter(|f| f.info().extensions.contains(&extension.as_str()));
    match (fitting.next(), fitting.next()) {
        (Some(format), None) => Ok(*format),
        _ => Err(Error::refused(
            format!("the name {:?} does not say the format", output.display().to_string()),
            format!("give it with --to: {}", ids()),
        )),
    }
}

/// An option that neither side knows is a mistake, not something to ignore.
pub(crate) fn check_options(
    options: &Options,
    source: &str,
    target: &dyn Format,
) -> Result<(), Error> {
    let declared = |f: &&dyn Format, name: &str| f.info().options.iter().any(|o| o.name == name);
    for format in table() {
        for option in format.info().options.iter().filter(|o| options.get(o.name).is_some()) {
            let read = option.reading && find(source).is_some_and(|f| declared(&f, option.name));
            if !read && !declared(&target, option.name) {
                return Err(Error::refused(
                    format!(
                        "--{} has no meaning for {} to {}",
                        option.name,
                        source,
                        target.info().id
                    ),
                    "",
                ));
            }
        }
    }
    Ok(())
}

fn transform(container: &mut Container, request: &Request) -> Result<(), Error> {
    keep_tensors(container, &request.select, &request.exclude)?;
    for (old, new) in &request.rename {
        rename(container, old, new)?;
    }
    for (key, value) in &request.set {
        container.set_as_before(key, value);
    }
    if let Some(words) = &request.words {
        give_words(container, words)?;
    }
    if request.explicit {
        to_explicit(container)?;
    }
    Ok(())
}

/// Leaves out the tensors that are not selected, or excluded.
pub(crate) fn keep_tensors(
    container: &mut Container,
    select: &[String],
    exclude: &[String],
) -> Result<(), Error> {
    let globs = |list: &[String]| list.iter().map(|t| pattern(t)).collect::<Result<Vec<_>, _>>();
    let (select, exclude) = (globs(select)?, globs(exclude)?);
    for pattern in &select {
        if !container.tensors.iter().any(|t| pattern.matches(&t.name)) {
            return Err(Error::refused(
                format!("no tensor fits {:?}", pattern.as_str()),
                "`weighbridge inspect` lists them",
            ));
        }
    }
    container.tensors.retain(|t| {
        let chosen = select.is_empty() || select.iter().any(|p| p.matches(&t.name));
        chosen && !exclude.iter().any(|p| p.matches(&t.name))
    });
    Ok(())
}

/// A pattern of names, with `*`, `?` and `[…]`.
pub fn pattern(text: &str) -> Result<glob::Pattern, Error> {
    glob::Pattern::new(text).map_err(|e| Error::refused(format!("bad pattern {text:?}: {e}"), ""))
}

fn rename(container: &mut Container, old: &str, new: &str) -> Result<(), Error> {
    let tensors = container.tensors.iter_mut().map(|t| &mut t.name);
    let keys = container.metadata.iter_mut().map(|(k, _): &mut (String, Value)| k);
    let sizevars = container.sizevars.iter_mut().map(|(k, _)| k);
    let mut found = false;
    for name in tensors.chain(keys).chain(sizevars).filter(|n| *n == old) {
        new.clone_into(name);
        found = true;
    }
    let twice = container.tensors.iter().filter(|t| t.name == new).count() > 1
        || container.metadata.iter().filter(|(k, _)| k == new).count() > 1
        || container.sizevars.iter().filter(|(k, _)| k == new).count() > 1;
    match (found, twice) {
        (true, false) => Ok(()),
        (false, _) => Err(Error::refused(
            format!("nothing is named {old:?}"),
            "`weighbridge inspect` lists the names",
        )),
        (true, true) => Err(Error::refused(format!("there is a {new:?} already"), "")),
    }
}
