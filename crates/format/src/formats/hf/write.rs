//! Container to a folder of files: the attachments as they are, the tensors as safetensors.
//!
//! Where the header of the original safetensors file travelled along and still fits the tensors,
//! the file is written with it, byte for byte as it was.

use super::super::safetensors::{self, DTYPES, Written, with_header};
use super::INFO;
use super::describe::describe_files;
use super::read::{HEADER, INDEX, MODEL, headers};
use crate::Error;
use crate::model::Tensor;
use crate::model::{Attachment, Container, Encoding, Note, NoteKind, Subject, Value};
use crate::plan::{Changed, FilePlan, Holds, Keeps, Piece, Plan, Report, fit, measure};
use crate::source::{clashing_names, folded, is_plain_name, name_problem};
use crate::spec::Architecture;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use weighbridge_codec::DType;

/// Attachments that are parts of an MCF file rather than files.
const PARTS: &str = "/mcf/";

pub(super) fn plan(container: &Container) -> Result<Plan, Error> {
    let (description, _) = describe_files(&container.attachments)?;
    let is_static = description.spec.known_architecture().is_some_and(Architecture::is_static);
    if !is_static && !container.attachments.iter().any(|a| a.name == "config.json") {
        return Err(Error::refused(
            "a model directory needs a config.json, and there is none in this file",
            "write safetensors instead",
        ));
    }
    let mut report = Report::default();
    // What is written tells most of the metadata again.
    let untold = |models: &[Model]| -> Vec<(String, Value)> {
        let in_headers: HashSet<_> = models.iter().flat_map(|m| &m.texts).collect();
        let told = |key: &String, text: String| {
            description.tells(key, &text)
                || description.config_tells(key, &text)
                || in_headers.contains(&(key.clone(), text))
        };
        let is_told = |(key, value): &&(String, Value)| {
            key == "model_name" || value.to_plain_text().is_some_and(|text| told(key, text))
        };
        container.metadata.iter().filter(|entry| !is_told(entry)).cloned().collect()
    };
    let headers = known_headers(container)?;
    // A new header has room for texts that the old one does not have.
    let all_said = |models: &Vec<Model>| untold(models).iter().all(|(_, v)| v.as_text().is_none());
    // Nor may the old one say what was removed.
    let is_said = |(key, text): &(String, String)| {
        key == "format" || container.text(key) == Some(text) || description.says(key).is_some()
    };
    let says_no_more = |models: &Vec<Model>| models.iter().flat_map(|m| &m.texts).all(is_said);
    let known = with_headers(container, &headers)?.filter(all_said).filter(says_no_more);
    let models = match known {
        Some(models) => {
            count_kept(container, &mut report);
            models
        }
        None => {
            if !headers.is_empty() {
                let why = "its old header does not fit the tensors or the metadata";
                let text = format!("{MODEL} is written anew: {why}");
                report.warnings.push(Note::new(NoteKind::Unusual, text));
            }
            vec![written_anew(container, &untold(&[]), &mut report)?]
        }
    };
    let mut files: Vec<FilePlan> = Vec::new();
    let refused = refused_names(container, &models);
    let is_anew = models.iter().all(|m| m.is_anew);
    for a in &container.attachments {
        if a.name.starts_with(PARTS) {
            let subject = Subject::Attachment(a.name.clone());
            report.lose(subject, "it is not a file of a model directory");
        } else if is_anew && (a.name == INDEX || is_header(container, a)?) {
            // About the safetensors files that there were.
            report.ignored.push(Subject::File(a.name.clone()));
        } else if is_header(container, a)? {
        } else if let Some(why) = refused.get(a.name.as_str()) {
            report.lose(Subject::Attachment(a.name.clone()), why.clone());
        } else {
            files.push(file(&a.name, vec![Piece::View(a.data.clone())]));
        }
    }
    let mut rest = container.clone();
    rest.attachments.clear();
    rest.metadata = untold(&models);
    rest.vocabulary.take_if(|v| description.vocabulary.as_ref().is_some_and(|w| w.same_as(v)));
    let holds = Holds { metadata: Keeps::Nothing, vocabulary: false, ..INFO.holds };
    let mut others = Report::default();
    // The tensors were placed above.
    rest.tensors.clear();
    fit(&rest, &holds, &mut others)?;
    report.losses.append(&mut others.losses);
    report.ignored.append(&mut others.ignored);
    report.warnings.append(&mut others.warnings);
    files.extend(models.into_iter().map(|m| m.file));
    check_names(&files)?;
    Ok(Plan::folder(files, report))
}

fn file(name: &str, pieces: Vec<Piece>) -> FilePlan {
    let mut file = FilePlan::named(name);
    pieces.into_iter().for_each(|p| file.push(p));
    file
}

/// Names come from a file: those that may not become files, and why. Of names that can't be together
/// in a folder the tensors' stay, then those in lower case throughout, as `config.json` is, and files
/// rather than what would be in folders of their names.
fn refused_names<'a>(
    container: &'a Container,
    models: &[Model],
) -> HashMap<&'a str, Cow<'static, str>> {
    let attached = container.attachments.iter().map(|a| a.name.as_str());
    let mut names: Vec<&str> = attached.filter(|n| !n.starts_with(PARTS)).collect();
    let problems = names.iter().filter_map(|n| Some((*n, name_problem(n)?.into())));
    let mut refused: HashMap<_, _> = problems.collect();
    names.retain(|name| !refused.contains_key(name));
    names.sort_by_key(|name| (folded(name) != **name, name.matches('/').count()));
    let own: Vec<&str> = models.iter().filter_map(|m| m.file.beside.as_deref()).collect();
    for (place, other) in clashing_names(own.iter().copied().chain(names.iter().copied())) {
        if let Some(name) = place.checked_sub(own.len()).and_then(|i| names.get(i)) {
            let why = format!("it can't be in a folder with {other:?} on every system");
            refused.insert(name, why.into());
        }
    }
    refused
}

/// No directory with more is read.
const MOST_FILES: usize = 10_000;

/// The last look at all names: what is wrong here was not left out above.
fn check_names(files: &[FilePlan]) -> Result<(), Error> {
    if files.len() > MOST_FILES {
        return Err(Error::limit("files of a model directory", MOST_FILES as u64));
    }
    let names = || files.iter().filter_map(|f| f.beside.as_deref());
    let problem = names().find_map(|name| Some((name, name_problem(name)?.to_owned())));
    let clash = || {
        let (place, other) = clashing_names(names()).into_iter().next()?;
        Some((names().nth(place)?, format!("it can't be in a folder with {other:?}")))
    };
    match problem.or_else(clash) {
        None => Ok(()),
        Some((name, why)) => Err(Error::refused(
            format!("{name:?} can't be a file of the folder: {why}"),
            "the file may want to write somewhere else; don't trust it",
        )),
    }
}

/// A planned safetensors file, and the texts in its header.
struct Model {
    file: FilePlan,
    texts: Vec<(String, String)>,
    is_anew: bool,
}

/// Whether an attachment is the header of a safetensors file rather than a file itself. In a
/// container from a folder it is a file of that name.
fn is_header(container: &Container, attachment: &Attachment) -> Result<bool, Error> {
    if !attachment.name.ends_with(HEADER) || container.dialect_of("hf").is_some() {
        return Ok(false);
    }
    let text = attachment.data.load()?;
    Ok(serde_json::from_slice::<safetensors::Header>(&text).is_ok())
}

/// Headers that travelled, by the name of the file they belong to.
fn known_headers(container: &Container) -> Result<Vec<(String, String)>, Error> {
    let mut list = Vec::new();
    for a in &container.attachments {
        if let Some(name) = a.name.strip_suffix(".header")
            && is_header(container, a)?
            && let Ok(text) = std::str::from_utf8(&a.data.load()?)
        {
            list.push((name.to_owned(), text.to_owned()));
        }
    }
    list.extend(headers(container));
    // Where they would stand under another name, or lead out of the folder, one file is written anew.
    let is_safe = |name: &str| is_plain_name(name) && name.ends_with(".safetensors");
    // Nobody would find them under other names, unless an index has these.
    let is_found = list.iter().any(|(name, _)| name == MODEL)
        || container.attachments.iter().any(|a| a.name == INDEX);
    match is_found && list.iter().all(|(name, _)| is_safe(name)) {
        true => Ok(list),
        false => Ok(Vec::new()),
    }
}

/// The safetensors files with their old headers, if those are about the tensors that there are.
fn with_headers(
    container: &Container,
    headers: &[(String, String)],
) -> Result<Option<Vec<Model>>, Error> {
    let mut left: HashMap<_, _> = container.tensors.iter().map(|t| (t.name.as_str(), t)).collect();
    let mut models = Vec::new();
    for (name, text) in headers.iter().filter(|_| container.dtype.is_none()) {
        match with_header_of(name, text, &mut left)? {
            Some(model) => models.push(model),
            None => return Ok(None),
        }
    }
    Ok((left.is_empty() && !models.is_empty()).then_some(models))
}

/// One file with its old header; takes its tensors out of those that are left.
fn with_header_of(
    name: &str,
    text: &str,
    left: &mut HashMap<&str, &Tensor>,
) -> Result<Option<Model>, Error> {
    let Ok(header) = serde_json::from_str::<safetensors::Header>(text) else { return Ok(None) };
    let mut entries: Vec<_> = header.tensors.iter().collect();
    entries.sort_by_key(|(_, e)| e.data_offsets);
    let (mut at, mut pieces) = (0u64, Vec::new());
    for (name, entry) in entries {
        let known = DTYPES.iter().find(|(n, _)| *n == entry.dtype);
        let (Some(tensor), Some((_, dtype))) = (left.remove(name.as_ref()), known) else {
            return Ok(None);
        };
        let plain = Encoding::Plain(*dtype);
        // A type that MCF does not have comes back from a wider one, if its values do.
        let fits = tensor.encoding == plain
            || match tensor.encoding {
                Encoding::Plain(wide) => {
                    dtype.wider().contains(&wide) && measure(tensor, *dtype)?.changed == 0
                }
                _ => *dtype == DType::F32,
            };
        let bytes = plain.byte_len(&tensor.shape);
        let Some((bytes, end)) = bytes.and_then(|bytes| Some((bytes, at.checked_add(bytes)?)))
        else {
            return Ok(None);
        };
        let there = tensor.has_data() && tensor.shape == entry.shape;
        if !fits || !there || entry.data_offsets != (at, end) {
            return Ok(None);
        }
        pieces.push(Piece::tensor(tensor, &plain, bytes));
        at = end;
    }
    let mut planned = with_header(text, pieces);
    planned.beside = Some(name.to_owned());
    Ok(Some(Model { file: planned, texts: header.metadata, is_anew: false }))
}

/// One new safetensors file with all tensors, and texts in its header.
fn written_anew(
    container: &Container,
    metadata: &[(String, Value)],
    report: &mut Report,
) -> Result<Model, Error> {
    let mut bare = container.clone();
    (bare.metadata, bare.sizevars, bare.attachments) = (vec![], vec![], vec![]);
    (bare.vocabulary, bare.records) = (None, None);
    (bare.ignored, bare.notes) = (vec![], vec![]);
    let placements = fit(&bare, &INFO.holds, report)?;
    let mut texts: Vec<_> = vec![("format".to_owned(), "pt".to_owned())];
    for (key, value) in metadata {
        texts.extend(value.as_text().map(|text| (key.clone(), text.to_owned())));
    }
    let tensors = placements.iter().map(|p| {
        let tensor = &container.tensors[p.tensor];
        Written {
            name: tensor.name.clone(),
            dtype: p.encoding.stored(),
            shape: tensor.shape.clone(),
            data: Piece::tensor(tensor, &p.encoding, p.bytes),
        }
    });
    let map = texts.iter().map(|(k, v)| (k.clone(), v.as_str().into())).collect();
    let mut planned = safetensors::assemble(map, tensors.collect())?;
    planned.beside = Some(MODEL.to_owned());
    Ok(Model { file: planned, texts, is_anew: true })
}

fn count_kept(container: &Container, report: &mut Report) {
    for tensor in &container.tensors {
        if let Encoding::Plain(_) = tensor.encoding {
            report.kept += 1;
        } else {
            let from = tensor.encoding.name();
            report.changed.push(Changed::new(&tensor.name, from, DType::F32.name()));
        }
    }
}
