//! The table of formats: finding one by name or by content, and opening files with it.

use super::{BUILTIN, Format, Stop, Sureness};
use crate::model::{Container, DamageCheck, Note, NoteKind, Records};
use crate::source::{Input, Source, mistaken};
use crate::spec;
use crate::wire::{Findings, What};
use crate::{Advice, Error, Listing, Options};
use std::borrow::Cow;

/// The formats that are known. What opens files takes one of these, so that formats of others can be
/// added.
#[derive(Clone, Debug)]
pub struct Formats(Cow<'static, [&'static Format]>);

/// The default are those that come with the library.
impl Default for Formats {
    fn default() -> Formats {
        Formats::builtin().clone()
    }
}

/// What came of reading an input.
#[derive(Debug)]
#[non_exhaustive]
pub struct Reading {
    /// The format that it was read as.
    pub format: &'static Format,
    /// The content, unless a broken rule made it unreadable.
    pub container: Option<Container>,
    /// Every broken rule.
    pub findings: Findings,
}

impl Formats {
    /// The formats that come with the library.
    pub fn builtin() -> &'static Formats {
        static FORMATS: Formats = Formats(Cow::Borrowed(&BUILTIN));
        &FORMATS
    }

    /// The same and one more. It takes the place of one with the same id.
    #[must_use]
    pub fn with(&self, format: &'static Format) -> Formats {
        let mut list = self.0.to_vec();
        match list.iter_mut().find(|f| f.info.id == format.info.id) {
            Some(place) => *place = format,
            None => list.push(format),
        }
        Formats(Cow::Owned(list))
    }

    /// All of them.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &'static Format> + '_ {
        self.0.iter().copied()
    }

    /// The format with this id.
    pub fn find(&self, id: &str) -> Option<&'static Format> {
        self.iter().find(|f| f.info.id == id)
    }

    /// The format with this id, which an option named.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is none; the advice lists those that could be meant.
    pub fn named(&self, id: &str, option: &'static str) -> Result<&'static Format, Error> {
        self.find(id).ok_or_else(|| {
            let advice = match option {
                "from" => Advice::See(Listing::Formats),
                _ => self.writable(option),
            };
            let meant = Advice::meant(
                id,
                self.iter().filter(|f| option == "from" || f.writes()).map(|f| f.info.id),
            );
            Error::refused(format!("there is no format {id:?}"), meant.and(advice))
        })
    }

    /// The format to write: the one that was asked for, else the one that the name's extension
    /// belongs to. A name that ends with `/` is a folder's.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such format, or the name belongs to none or to several.
    pub fn target(&self, name: &str, to: Option<&str>) -> Result<&'static Format, Error> {
        const OPTION: &str = "to";
        if let Some(id) = to {
            return self.named(id, OPTION);
        }
        if name.ends_with('/') {
            let mut folders = self.iter().filter(|f| f.info.is_folder);
            if let (Some(one), None) = (folders.next(), folders.next()) {
                return Ok(one);
            }
        }
        let extension = extension(name);
        let fitting = self.iter().filter(|f| f.info.extensions.contains(&extension.as_str()));
        match fitting.collect::<Vec<_>>()[..] {
            [format] => Ok(format),
            [] if !extension.is_empty() => {
                let known = self.iter().filter(|f| f.writes()).flat_map(|f| f.info.extensions);
                let meant =
                    Advice::meant(&format!(".{extension}"), known.map(|known| format!(".{known}")));
                Err(self.untold(name, meant.and(self.writable(OPTION))))
            }
            [] => Err(self.untold(name, self.writable(OPTION))),
            ref several => {
                let ids = several.iter().map(|f| f.info.id);
                Err(self.untold(name, Advice::one_of(OPTION, ids)))
            }
        }
    }

    fn untold(&self, name: &str, advice: Advice) -> Error {
        Error::refused(format!("the name {name:?} does not tell the format"), advice)
    }

    fn writable(&self, option: &'static str) -> Advice {
        Advice::one_of(option, self.iter().filter(|f| f.writes()).map(|f| f.info.id))
    }

    /// Finds the format of an input.
    ///
    /// # Errors
    /// [`Error::Unrecognised`], which says what the input is instead where that is known.
    pub fn detect(&self, input: &Input) -> Result<&'static Format, Error> {
        let mistake = mistaken_for(input)?;
        let best = self.iter().map(|f| ((f.probe)(input, &f.info), f)).max_by_key(|(s, _)| *s);
        match best {
            Some((Sureness::Magic | Sureness::Content, format)) => Ok(format),
            Some((Sureness::Name, format)) if mistake.is_none() => Ok(format),
            _ => {
                let (what, advice) = mistake.unwrap_or_else(|| match input.is_folder {
                    true => (
                        "a folder that is not a model directory",
                        "a model directory has a config.json and a model.safetensors".into(),
                    ),
                    false => ("not a file of any known format", Advice::See(Listing::Formats)),
                });
                Err(Error::unrecognised(&input.path, format!("this is {what}"), advice))
            }
        }
    }

    /// Detects the format (or takes the one that the option `from` names) and parses the structure.
    ///
    /// # Errors
    /// Where there is no such format, or reading fails for another reason than a broken rule.
    pub fn read(&self, input: &Input, options: &Options) -> Result<Reading, Error> {
        let mut reading = self.parse(input, options, Findings::thorough())?;
        reading.findings.locate(|name| input.path_of(name));
        Ok(reading)
    }

    /// The same with findings that name the files beside the main one as the format calls them.
    fn parse(
        &self,
        input: &Input,
        options: &Options,
        mut findings: Findings,
    ) -> Result<Reading, Error> {
        let format = match options.get("from") {
            Some(id) => {
                let format = self.named(id, "from")?;
                if (format.probe)(input, &format.info) < Sureness::Content
                    && let Some((what, advice)) = mistaken_for(input)?
                {
                    return Err(Error::unrecognised(
                        &input.path,
                        format!("this is {what}"),
                        advice,
                    ));
                }
                format
            }
            None => self.detect(input)?,
        };
        let Some(read) = format.read else {
            let message =
                format!("{}: {} can be written and not read", input.path, format.info.name);
            return Err(Error::unsupported(format.info.id, message, ""));
        };
        let mut container = match read(input, options, &mut findings) {
            Ok(container) => Some(container),
            Err(Stop::Broken(finding)) => {
                findings.push(*finding);
                None
            }
            Err(Stop::Failed(Error::Limit { what, most, advice })) => {
                let what = format!("{}: {what}", input.path);
                return Err(Error::Limit { what, most, advice });
            }
            Err(Stop::Failed(error)) => return Err(error),
        };
        if let Some(container) = &mut container {
            let unknown = container.regions.of(What::Unknown);
            let unknown: u64 = unknown.map(|span| span.end - span.start).sum();
            if unknown > 0 {
                let (bytes, are) = if unknown == 1 { ("byte", "is") } else { ("bytes", "are") };
                let text = format!("{unknown} {bytes} that nothing refers to {are} left out");
                container.notes.push(Note::new(NoteKind::LeftOut, text));
            }
            let beside = container.files.iter().map(|(_, source)| source);
            let attached = container.attachments.iter().map(|a| a.data.source());
            let unread = container.records.as_ref().and_then(Records::source);
            let mut opened = vec![input.source.clone()];
            opened.extend(
                beside.chain(attached).chain(unread).filter(|s| !s.is(&input.source)).cloned(),
            );
            container.opened = opened;
            // Whatever it travelled through, unknown words come out as where it was made.
            let made_by = container.origin.as_ref().map_or(container.format, |o| &o.format);
            if let (Some(made_by), Some(subwords)) = (self.find(made_by), &mut container.subwords) {
                subwords.vectors = made_by.info.subword_vectors;
            }
        }
        Ok(Reading { format, container, findings })
    }

    /// Opens an input. What takes long to check, and is not needed to use the rest, is checked when it
    /// is used: row records.
    ///
    /// # Errors
    /// Where [`Formats::read`] fails, and [`Error::Malformed`] for a broken structural rule.
    pub fn open(&self, input: &Input, options: &Options) -> Result<Container, Error> {
        let Reading { format, container, mut findings } =
            self.parse(input, options, Findings::default())?;
        findings.locate(|name| input.path_of(name));
        match (findings.first_error(), container) {
            (None, Some(mut container)) => {
                container.damage = damage_check(format, &container, input);
                container.check_unchanged()?;
                Ok(container)
            }
            (Some(finding), _) => Err(Error::malformed(&finding.file, finding.clone())),
            (None, None) => Err(Error::unrecognised(&input.path, "it can't be read", "")),
        }
    }

    /// Checks every rule of the input's format; with `quick`, those of the structure only.
    ///
    /// # Errors
    /// Where [`Formats::read`] fails. Broken rules are findings.
    pub fn check(
        &self,
        input: &Input,
        options: &Options,
        quick: bool,
    ) -> Result<(&'static Format, Findings), Error> {
        let Reading { format, container, mut findings } =
            self.parse(input, options, Findings::thorough())?;
        findings.unchecked = format.info.unchecked(container.as_ref(), quick);
        let opened = container.as_ref().map(|c| c.opened.clone()).unwrap_or_default();
        if let Some(container) = container.filter(|_| !quick) {
            (format.check)(&container, input, &mut findings)?;
            if let Some(rule) = format.info.model_rule {
                spec::check(&container, rule, format.info.is_folder, &mut findings)?;
            }
        }
        // What was found is of a file that is no more.
        opened.iter().try_for_each(Source::check_unchanged)?;
        findings.locate(|name| input.path_of(name));
        Ok((format, findings))
    }

    /// An option that neither the source's format nor the target's declares is a mistake, not
    /// something to ignore.
    ///
    /// # Errors
    /// [`Error::Refused`] with the option's name.
    pub fn check_options(
        &self,
        options: &Options,
        source: &str,
        target: &Format,
    ) -> Result<(), Error> {
        let read = self.find(source);
        for option in self.iter().flat_map(|f| f.info.options) {
            let is_read = option.reading && read.is_some_and(|f| f.info.has_option(option.name));
            let is_used = is_read || target.info.has_option(option.name);
            if options.get(option.name).is_some() && !is_used {
                let message = format!(
                    "the option {} has no meaning for {source} to {}",
                    option.name, target.info.id
                );
                return Err(Error::refused(message, Advice::LeaveOut { option: option.name }));
            }
        }
        Ok(())
    }
}

/// What looks for damage in the data of a container; none for a format that has no rules about it.
fn damage_check(
    format: &'static Format,
    container: &Container,
    input: &Input,
) -> Option<DamageCheck> {
    if format.info.damage.is_empty() {
        return None;
    }
    let (container, input) = (container.clone(), input.clone());
    Some(DamageCheck::new(move || {
        let mut findings = Findings::only(format.info.damage);
        (format.check)(&container, &input, &mut findings)?;
        findings.locate(|name| input.path_of(name));
        Ok(findings.into_list().into_iter().next())
    }))
}

/// What an input is that only its name takes for something else.
fn mistaken_for(input: &Input) -> Result<Option<(&'static str, Advice)>, Error> {
    // A folder has no bytes of its own.
    if input.is_folder { Ok(None) } else { Ok(mistaken::recognise(input.source.head()?)) }
}

/// The extension of a name, in lower case; empty when there is none.
fn extension(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    match last.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => extension.to_ascii_lowercase(),
        _ => String::new(),
    }
}
