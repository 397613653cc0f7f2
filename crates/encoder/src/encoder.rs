//! A model that is ready to use.

mod average;
mod observe;
mod prompt;
mod rehearse;

pub use prompt::{PromptChoice, Purpose};

use crate::architectures::{Model, Observer};
use crate::head::{self, Classifier, Dense, Head};
use crate::id::{self, ModelId};
use crate::layers::{Packing, Scratch};
use crate::pool::Pool;
use crate::schedule::{Call, Schedule, Texts, Turn};
use crate::settings::{Assumption, ResolvedSettings, Settings, Use};
use crate::team::Team;
use crate::tokenizer::Tokenizer;
use prompt::prompted;
use std::cell::RefCell;
use std::ops::{ControlFlow, Range};
#[cfg(feature = "fs")]
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use weighbridge_codec::parallel::{self, *};
use weighbridge_format::model::DamageCheck;
use weighbridge_format::spec::{ModelSpec, Prompt};
use weighbridge_format::{Advice, Container, Error, Listing, Tensor};
#[cfg(feature = "fs")]
use weighbridge_format::{Formats, Input, Options};

/// Texts that one thread tokenizes at a time.
const TEXTS_PER_TASK: usize = 32;

/// A model with its tokenizer, ready to embed texts: to make a vector of each.
///
/// ```no_run
/// # fn main() -> Result<(), weighbridge_encoder::Error> {
/// let encoder = weighbridge_encoder::Encoder::open("minilm.weights")?;
/// let vectors = encoder.embed(&["A man is eating pasta.", "Someone has lunch."])?;
/// assert_eq!(vectors[0].len(), encoder.dimensions());
/// # Ok(())
/// # }
/// ```
///
/// Many threads may use it at once: their texts share batches and the same few threads, and clones
/// are the same encoder.
///
/// ```no_run
/// # fn main() -> Result<(), weighbridge_encoder::Error> {
/// use weighbridge_encoder::{Encoder, Purpose};
///
/// let documents = Encoder::open("e5-small")?.for_purpose(Purpose::Document);
/// let queries = documents.for_purpose(Purpose::Query);
/// assert_eq!(queries.prompt().map(|prompt| prompt.text.as_str()), Some("query: "));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Encoder {
    inner: Arc<Inner>,
    /// What is put in front of every text.
    prompt: Option<Arc<Prompt>>,
    /// The first tokens of every text that its vector is not made of.
    skipped: usize,
}

/// What threads of the pool hold on to while they work.
#[derive(Debug)]
struct Inner {
    spec: ModelSpec,
    /// The tensors that were loaded, by the names that the architecture gives them.
    weights: Vec<(String, Tensor)>,
    model: Box<dyn Model>,
    tokenizer: Tokenizer,
    settings: ResolvedSettings,
    head: Head,
    pool: Pool,
    schedule: Schedule,
    /// Memory of earlier batches, to be used again.
    spare: Mutex<Vec<Scratch>>,
    /// Nobody gets vectors that come of a damaged file.
    damage: Option<DamageCheck>,
}

impl Encoder {
    /// Opens a model in a file or directory of any format, with the model's own settings.
    ///
    /// # Errors
    ///
    /// When the file can't be read, or is not a model that can be used, see [`Encoder::new`].
    #[cfg(feature = "fs")]
    pub fn open(path: impl AsRef<Path>) -> Result<Encoder, Error> {
        Encoder::open_with(path, &Settings::default())
    }

    /// Opens a model in a file or directory of any format.
    ///
    /// # Errors
    ///
    /// When the file can't be read, or model or settings can't be used, see [`Encoder::new`].
    #[cfg(feature = "fs")]
    pub fn open_with(path: impl AsRef<Path>, settings: &Settings) -> Result<Encoder, Error> {
        let input = Input::open(path.as_ref())?;
        Encoder::new(&Formats::builtin().open(&input, &Options::default())?, settings)
    }

    /// Loads the weights and the tokenizer of a model that is open.
    ///
    /// # Errors
    ///
    /// When the model needs what there is not here (see [`lacks`](crate::lacks)), or lacks tensors,
    /// metadata or a vocabulary; when its weights are NaN or infinite; or when the settings ask for
    /// what the model can't do, such as more tokens than it has positions.
    pub fn new(container: &Container, settings: &Settings) -> Result<Encoder, Error> {
        Encoder::load(container, settings, Packing::of(settings.precision), Use::Vectors)
    }

    /// Loads a model for vectors, or for scores of pairs.
    pub(crate) fn load(
        container: &Container,
        settings: &Settings,
        packing: Packing,
        what_for: Use,
    ) -> Result<Encoder, Error> {
        container.start_damage_check();
        let spec = ModelSpec::of(container)?;
        let is_pooling_set = what_for == Use::Scores || settings.pooling.is_some();
        let architecture = crate::support::check(&spec, is_pooling_set)?;
        let pool = Pool::new(settings.threads)?;
        let (model, tokenizer) = pool.install(|| {
            // The weights take longest; the words are read beside them.
            let (model, tokenizer) = parallel::join(
                || architecture.load(&spec, container, packing),
                || Tokenizer::of_model(container, &spec),
            );
            Ok::<_, Error>((model?, tokenizer?))
        })?;
        container.check_unchanged()?;
        let sizes = model.sizes();
        if tokenizer.len() > sizes.vocabulary {
            let (tokens, rows) = (tokenizer.len(), sizes.vocabulary);
            let what = format!("the vocabulary has {tokens} tokens, and {rows} have a vector");
            return Err(Error::refused(what, "vocabulary and weights are of different models"));
        }
        let (head, settings) = match what_for {
            Use::Scores => {
                let prefix = architecture.tensors(container).prefix();
                let classifier = Classifier::load(&spec, container, prefix, sizes.hidden)?;
                let labels = classifier.labels();
                let settings = Settings { dimensions: None, ..settings.clone() };
                let settings = ResolvedSettings::new(&settings, &spec, sizes, labels, what_for)?;
                // Of each of the two at least one token.
                let least = tokenizer.tokens_around_pair().map_or(0, |around| around + 2);
                if settings.max_tokens < least {
                    let what = format!(
                        "a limit of {} tokens leaves no room for two texts between the special ones",
                        settings.max_tokens
                    );
                    return Err(Error::refused(what, format!("at least {least}")));
                }
                (Head::Scores(Box::new(classifier)), settings)
            }
            Use::Vectors => {
                let pooled = sizes.hidden * settings.poolings(&spec).len();
                let dense = head::dense_layers(&spec, container, pooled)?;
                let width = dense.last().map_or(pooled, Dense::width);
                let resolved = ResolvedSettings::new(settings, &spec, sizes, width, what_for)?;
                (Head::Vector(dense), resolved)
            }
        };
        let schedule = Schedule::new(pool.threads(), model.most_members());
        let (spare, weights) = (Mutex::default(), architecture.weights(container));
        let inner = Arc::new(Inner {
            spec,
            weights,
            model,
            tokenizer,
            settings,
            head,
            pool,
            schedule,
            spare,
            damage: container.damage.clone(),
        });
        Ok(Encoder { inner, prompt: None, skipped: 0 })
    }

    /// How many values the vector of a text has.
    pub fn dimensions(&self) -> usize {
        self.inner.settings.dimensions
    }

    /// How many tokens of a text are used, `[CLS]` and `[SEP]` included; longer texts are cut off.
    pub fn max_tokens(&self) -> usize {
        self.inner.settings.max_tokens
    }

    /// The settings in use that neither the user nor the model said.
    pub fn assumed(&self) -> &[Assumption] {
        &self.inner.settings.assumed
    }

    /// What is known of the model.
    pub fn spec(&self) -> &ModelSpec {
        &self.inner.spec
    }

    /// Which model it is, and where it was found if that is said. All weights are read for it.
    ///
    /// # Errors
    ///
    /// When the weights can't be read, or a vector has a value that is NaN or infinite.
    pub fn id(&self, path: Option<String>) -> Result<ModelId, Error> {
        let name = self.inner.spec.name.clone();
        let weights = self.inner.pool.install(|| id::hash(&self.inner.weights))?;
        Ok(ModelId { name, path, weights, probes: self.probes()? })
    }

    /// The vectors of the texts that models are told apart by, without any prompt.
    ///
    /// # Errors
    ///
    /// When a vector has a value that is NaN or infinite.
    pub fn probes(&self) -> Result<Vec<Vec<f32>>, Error> {
        self.without_prompt().embed(&id::PROBES)
    }

    /// The model's tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.inner.tokenizer
    }

    /// How many of the texts have more tokens than are used, so that their ends do not count.
    pub fn count_cut(&self, texts: &[impl AsRef<str> + Sync]) -> u64 {
        let most = self.max_tokens();
        let is_cut = |text: &str| {
            // A token stands for one byte at least.
            let text = prompted(self.prompt.as_deref(), text);
            text.len() > most.saturating_sub(2) && self.tokenizer().is_cut(&text, most)
        };
        let count = |texts: &[_]| {
            texts.iter().filter(|text| is_cut(AsRef::<str>::as_ref(*text))).count() as u64
        };
        if texts.len() <= TEXTS_PER_TASK {
            return count(texts);
        }
        self.inner.pool.install(|| texts.par_chunks(TEXTS_PER_TASK).map(count).sum())
    }

    /// The vector of each text, in their order. What else is among the texts makes no difference.
    ///
    /// # Errors
    ///
    /// When the model's file is damaged, or a vector has a value that is NaN or infinite, which comes
    /// of broken weights.
    pub fn embed(&self, texts: &[impl AsRef<str> + Sync]) -> Result<Vec<Vec<f32>>, Error> {
        let vectors = self.embed_flat(texts)?;
        Ok(vectors.chunks_exact(self.dimensions()).map(<[f32]>::to_vec).collect())
    }

    /// Like [`Encoder::embed`], with one vector behind the other.
    ///
    /// # Errors
    ///
    /// When the model's file is damaged, or a vector has a value that is NaN or infinite, which comes
    /// of broken weights.
    pub fn embed_flat(&self, texts: &[impl AsRef<str> + Sync]) -> Result<Vec<f32>, Error> {
        self.embed_flat_telling(texts, &mut |_| ControlFlow::Continue(()))
    }

    /// Like [`Encoder::embed_flat`]. `tell` hears now and then how many of the texts are done, and can end
    /// the work.
    ///
    /// # Errors
    ///
    /// Those of [`Encoder::embed_flat`], and [`Error::Cancelled`].
    pub fn embed_flat_telling(
        &self,
        texts: &[impl AsRef<str> + Sync],
        tell: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Vec<f32>, Error> {
        if let Some(table) = self.averaged_table() {
            return self.average(table, texts, tell);
        }
        let (ids, ranges) = self.inner.tokenize(texts, self.prompt.as_deref());
        self.run(Texts { ids, ranges, skipped: self.skipped, ..Texts::default() }, tell)
    }

    /// The vectors of texts that are tokens already, those around them included, one behind the other.
    /// `tell` hears now and then how many are done, and can end the work.
    ///
    /// # Errors
    ///
    /// When there is no such token, or a text has more of them than the model takes; those of
    /// [`Encoder::embed_flat_telling`].
    pub fn embed_tokens(
        &self,
        texts: &[impl AsRef<[u32]>],
        tell: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Vec<f32>, Error> {
        let (mut ids, mut ranges) = (Vec::new(), Vec::with_capacity(texts.len()));
        for text in texts {
            let (text, start) = (text.as_ref(), ids.len());
            if text.len() > self.max_tokens() {
                let what = format!("a text has {} tokens", text.len());
                return Err(Error::refused(what, format!("at most {}", self.max_tokens())));
            }
            ids.extend_from_slice(text);
            ranges.push(start..ids.len());
        }
        let tokens = self.inner.model.sizes().vocabulary;
        if let Some(id) = ids.iter().find(|id| **id as usize >= tokens) {
            return Err(Error::refused(format!("there is no token {id}"), ""));
        }
        self.run(Texts { ids, ranges, ..Texts::default() }, tell)
    }

    /// The scores of pairs of texts, one pair behind the other. `tell` hears now and then how many are
    /// done, and can end the work.
    pub(crate) fn score_pairs<S: AsRef<str> + Sync>(
        &self,
        pairs: &[(S, S)],
        tell: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Vec<f32>, Error> {
        let inner = &self.inner;
        let tokenize = |pairs: &[(S, S)]| {
            let mut texts = Texts::default();
            for (first, second) in pairs {
                let (most, start) = (self.max_tokens(), texts.ids.len());
                let (first, second) = (first.as_ref(), second.as_ref());
                let place = inner.tokenizer.encode_pair_into(first, second, most, &mut texts.ids);
                texts.seconds.push(place);
                texts.ranges.push(start..texts.ids.len());
            }
            texts
        };
        if !inner.tokenizer.takes_pairs() {
            let what = "the tokenizer does not say how two texts go together";
            return Err(Error::unsupported("pairs", what, "its post_processor would"));
        }
        let parts: Vec<_> =
            inner.pool.install(|| pairs.par_chunks(TEXTS_PER_TASK).map(tokenize).collect());
        let mut all = Texts::default();
        for part in parts {
            let first = all.ids.len();
            all.ids.extend(part.ids);
            all.seconds.extend(part.seconds);
            all.ranges.extend(part.ranges.into_iter().map(|r| first + r.start..first + r.end));
        }
        self.run(all, tell)
    }

    /// Takes texts through the model.
    fn run(
        &self,
        texts: Texts,
        tell: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Vec<f32>, Error> {
        let inner = &self.inner;
        let call = Call::new(texts, self.dimensions(), inner.pool.threads());
        let tell = RefCell::new(tell);
        // Between the batches that this thread computes; others are counted with them.
        let compute = |turn: &mut Turn| {
            if tell.borrow_mut()(call.done()).is_break() {
                inner.schedule.withdraw(&call);
            }
            inner.compute(turn)
        };
        inner.schedule.run(&call, compute, || inner.call_helper());
        self.checked(call.result()?)
    }

    /// Vectors that may be handed out.
    fn checked(&self, vectors: Vec<f32>) -> Result<Vec<f32>, Error> {
        if let Some(check) = &self.inner.damage {
            check.finish()?;
        }
        match vectors.iter().position(|v| !v.is_finite()) {
            None => Ok(vectors),
            Some(at) => Err(Error::refused(
                format!(
                    "text {} has a vector with a value that is NaN or infinite",
                    at / self.dimensions() + 1
                ),
                Advice::See(Listing::Findings),
            )),
        }
    }
}

impl Inner {
    /// The tokens of all texts, one text behind the other, and the range of each text.
    fn tokenize(
        &self,
        texts: &[impl AsRef<str> + Sync],
        prompt: Option<&Prompt>,
    ) -> (Vec<u32>, Vec<Range<usize>>) {
        let tokenize_some = |texts: &[_]| {
            let (mut ids, mut ends) = (Vec::new(), Vec::with_capacity(texts.len()));
            for text in texts {
                let text = prompted(prompt, AsRef::as_ref(text));
                self.tokenizer.encode_into(&text, self.settings.max_tokens, &mut ids);
                ends.push(ids.len());
            }
            (ids, ends)
        };
        let chunks: Vec<_> = if texts.len() <= TEXTS_PER_TASK {
            vec![tokenize_some(texts)]
        } else {
            let all = || texts.par_chunks(TEXTS_PER_TASK).map(tokenize_some).collect();
            self.pool.install(all)
        };
        let (mut ids, mut ranges) = (Vec::new(), Vec::with_capacity(texts.len()));
        for (chunk, ends) in chunks {
            let first = ids.len();
            for end in ends {
                let start = ranges.last().map_or(0, |range: &Range<usize>| range.end);
                ranges.push(start..first + end);
            }
            ids.extend(chunk);
        }
        (ids, ranges)
    }

    /// Asks a thread of the pool to take some of the texts that wait.
    fn call_helper(self: &Arc<Inner>) {
        let inner = self.clone();
        self.pool.spawn(move || {
            inner.schedule.help(|turn| inner.compute(turn), || inner.call_helper());
        });
    }

    /// Computes the vectors of a batch.
    fn compute(self: &Arc<Inner>, turn: &mut Turn) -> Result<(), Error> {
        let mut batch = Texts::default();
        for part in &turn.parts {
            let all = &part.call.texts;
            for number in part.numbers() {
                let text = &all.ranges[*number];
                batch.ranges.push(batch.ids.len()..batch.ids.len() + text.len());
                batch.ids.extend_from_slice(&all.ids[text.clone()]);
                // Texts of another caller may stand alone.
                let second = all.seconds.get(*number);
                batch.seconds.push(second.copied().unwrap_or(text.len()));
            }
        }
        let is_empty = |text: &Range<usize>| text.is_empty();
        batch.only_first =
            self.head.takes_first(&self.settings) && !batch.ranges.iter().any(is_empty);
        let texts: Vec<_> = match batch.only_first {
            true => (0..batch.ranges.len()).map(|row| row..row + 1).collect(),
            false => batch.ranges.clone(),
        };
        let scratch = self.run(batch, &mut turn.threads, None)?;
        let hidden = self.model.sizes().hidden;
        let mut texts = texts.into_iter();
        for part in &turn.parts {
            part.write(|vector| {
                if let Some(text) = texts.next() {
                    let rows = &scratch.hidden[text.start * hidden..text.end * hidden];
                    let skipped = part.call.texts.skipped;
                    self.head.make(rows, hidden, skipped, &self.settings, vector);
                }
            });
        }
        self.put_back(scratch);
        Ok(())
    }

    /// Takes texts through the model with a number of threads, which becomes that of those who have
    /// come. The vectors of the tokens are in the scratch's `hidden`. The observer is called by this
    /// thread.
    fn run(
        self: &Arc<Inner>,
        texts: Texts,
        threads: &mut usize,
        observer: Option<Observer>,
    ) -> Result<Scratch, Error> {
        let shared = Shared { team: Team::new(*threads), texts, start: OnceLock::new() };
        let shared = Arc::new(shared);
        // They wake up while this thread looks the tokens up.
        for _ in 1..*threads {
            let (inner, shared) = (self.clone(), shared.clone());
            self.pool.spawn(move || inner.assist(&shared));
        }
        let not_begun = NotBegun(&shared.team);
        let mut scratch = self.scratch();
        let batch = shared.texts.batch();
        self.model.embed(batch, &mut scratch)?;
        if *threads > 1 {
            // Nobody else sets it.
            let _ = shared.start.set(scratch.hidden.clone());
        }
        std::mem::forget(not_begun);
        let mut member = shared.team.close();
        let missing = *threads - member.team_size();
        if missing > 0 {
            self.schedule.give_back(missing, || self.call_helper());
        }
        *threads = member.team_size();
        self.model.run(batch, &mut member, &mut scratch, observer);
        Ok(scratch)
    }

    /// What a thread of the pool does that was called into a team.
    fn assist(&self, shared: &Shared) {
        let Some(mut member) = shared.team.join() else { return };
        // Without it the tokens could not be looked up.
        let Some(start) = shared.start.get() else { return };
        let mut scratch = self.scratch();
        scratch.hidden.clone_from(start);
        let batch = shared.texts.batch();
        self.model.run(batch, &mut member, &mut scratch, None);
        self.put_back(scratch);
    }

    /// Memory for a thread: that of an earlier batch where there is some.
    fn scratch(&self) -> Scratch {
        self.spare.lock().ok().and_then(|mut spare| spare.pop()).unwrap_or_default()
    }

    fn put_back(&self, scratch: Scratch) {
        if let Ok(mut spare) = self.spare.lock() {
            spare.push(scratch);
        }
    }
}

/// The first member of a team that has not begun: if it never does, the others must not wait.
struct NotBegun<'a>(&'a Team);

impl Drop for NotBegun<'_> {
    fn drop(&mut self) {
        self.0.give_up();
    }
}

/// What a team computes.
struct Shared {
    team: Team,
    texts: Texts,
    /// The vectors of the tokens before the first layer; there when the team begins.
    start: OnceLock<Vec<f32>>,
}
