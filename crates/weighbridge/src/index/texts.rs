//! Asking with texts: which model makes vectors of them.

use super::{Index, refused};
use crate::embed::{MadeWith, OutputType};
use crate::models::{self, Places};
use std::path::{Path, PathBuf};
use weighbridge_encoder::{Encoder, Precision, PromptChoice, Purpose, Settings};
use weighbridge_format::{Advice, Error};

/// How texts become queries.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TextSettings {
    /// The model, by path or name; without it, the one that the file says.
    pub model: Option<String>,
    /// Another prompt than the model's for queries.
    pub prompt: Option<String>,
    /// The precision that the model computes with; without it that of the rows.
    pub precision: Option<Precision>,
    /// Threads to use; all cores without it.
    pub threads: Option<usize>,
}

impl Index {
    /// The encoder for queries: of this model, by path or name, or of the one that the file says its rows
    /// are of. That is looked for where it was, and in the caches. It has the prompt for queries.
    ///
    /// # Errors
    /// [`Error::Refused`] with the subject `model` if no model is known, or it is another than that
    /// of the rows; [`Error::NotFound`] if it is not on this machine; what keeps it from being used.
    pub fn encoder(&self, model: Option<&str>) -> Result<Encoder, Error> {
        self.encoder_with(
            &TextSettings { model: model.map(str::to_owned), ..TextSettings::default() },
            |path, settings| models::encoder(path, settings),
        )
    }

    /// The same with other settings, and another way to open a model.
    ///
    /// # Errors
    /// Those of [`Index::encoder`], and of `open`.
    pub fn encoder_with(
        &self,
        texts: &TextSettings,
        open: impl Fn(&Path, &Settings) -> Result<Encoder, Error>,
    ) -> Result<Encoder, Error> {
        let made_with = match (self.made_with(), &texts.model) {
            // Who names the model needs nothing of what the file says.
            (Err(_), Some(_)) => None,
            (made_with, _) => made_with?,
        };
        if let Some(stored) = made_with.as_ref().and_then(|made| made.output.as_ref())
            && stored.output_type().is_none_or(OutputType::is_coded)
        {
            let what = format!("the rows are {} codes, with which no text compares", stored.name);
            let advice = Advice::from("search a file of f32, f16 or i8bin rows of the same texts");
            return Err(refused("model", what, advice));
        }
        let mut settings = made_with.as_ref().map(MadeWith::settings).unwrap_or_default();
        settings.precision = texts.precision.unwrap_or(settings.precision);
        settings.threads = texts.threads;
        let encoder = match (&texts.model, &made_with) {
            (Some(model), _) => {
                let path = models::find(model)?;
                let encoder = open(&path, &settings)?;
                self.check_model(&encoder, &path, made_with.as_ref())?;
                encoder
            }
            (None, Some(made_with)) => self.remembered(made_with, &settings, open)?,
            (None, None) => {
                let what = "the file does not say which model its rows are of";
                let advice = Advice::set("model", "names the model that makes vectors of texts");
                return Err(refused("model", what, advice));
            }
        };
        let choice = PromptChoice::new(texts.prompt.as_deref(), Purpose::Query);
        Ok(encoder.with_prompt(&choice))
    }

    /// The model that the file says, from where it was, else from the caches.
    fn remembered(
        &self,
        made_with: &MadeWith,
        settings: &Settings,
        open: impl Fn(&Path, &Settings) -> Result<Encoder, Error>,
    ) -> Result<Encoder, Error> {
        let id = &made_with.model;
        let mut failed = None;
        for path in candidates(made_with) {
            let opened = open(&path, settings).and_then(|encoder| {
                self.check_model(&encoder, &path, Some(made_with)).map(|()| encoder)
            });
            match opened {
                Ok(encoder) => return Ok(encoder),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        let name = id.name.as_deref().or(id.path.as_deref()).unwrap_or("without a name");
        let was = id.path.as_ref().map(|path| format!("; it was at {path}")).unwrap_or_default();
        let what = format!("the model of the rows, {name}, is not on this machine{was}");
        Err(Error::not_found(name, what, Advice::set("model", "names the model, wherever it is")))
    }

    fn check_model(
        &self,
        encoder: &Encoder,
        path: &Path,
        made_with: Option<&MadeWith>,
    ) -> Result<(), Error> {
        if encoder.dimensions() != self.dim() {
            let (n, dim) = (encoder.dimensions(), self.dim());
            let what =
                format!("{} makes vectors of {n} values, and the rows have {dim}", path.display());
            let advice = Advice::set("model", "names the model that the rows are of");
            return Err(refused("model", what, advice));
        }
        let path = Some(path.display().to_string());
        made_with.map_or(Ok(()), |made_with| made_with.check(encoder, path))
    }
}

/// Where the model of some rows may be, the likeliest first.
fn candidates(made_with: &MadeWith) -> Vec<PathBuf> {
    let id = &made_with.model;
    let stored = id.path.as_ref().map(PathBuf::from).filter(|path| path.exists());
    let by_name = id.name.as_ref().and_then(|name| models::find(name).ok());
    let mut list: Vec<PathBuf> = stored.into_iter().chain(by_name).collect();
    // A model in the caches may go by another name there.
    if list.is_empty()
        && let Ok(places) = Places::from_env()
    {
        let known = |name: &str| {
            let same = |a: &str, b: &str| a.rsplit('/').next() == b.rsplit('/').next();
            id.name.as_deref().is_some_and(|own| same(own, name))
        };
        let cached =
            places.list().into_iter().filter(|model| model.lacks.is_none() && known(&model.name));
        list.extend(cached.map(|model| model.model));
    }
    list.dedup();
    list
}
