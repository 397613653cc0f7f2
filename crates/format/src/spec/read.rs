//! Files, metadata and tensors to a description.

use super::architecture::{Architecture, MODEL2VEC, STATIC_EMBEDDING, architectures};
use super::files::{Attached, ModelFiles};
use super::tokenizer::{Normalizer, SkippedVocabulary, TOKENIZER, TokenizerFile, WORD_PIECE};
use super::{
    Activation, Fact, Misstatement, ModelSpec, Module, Pooling, Positions, Prompt, SaidBy,
    TokenizerFacts, families, metadata, rope,
};
use crate::Error;
use crate::model::Container;
use crate::wire::Stop;
use serde_json::Value as Json;

const CONFIG: &str = "config.json";
const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
const LIMITS: &str = "sentence_bert_config.json";
const SENTENCE: &str = "config_sentence_transformers.json";
const MODULES: &str = "modules.json";
/// Where the pooling's settings are, unless modules.json names another folder.
const POOLING: &str = "1_Pooling";

/// The module of sentence-transformers that is a table of the tokens' vectors.
const STATIC_MODULE: &str = "StaticEmbedding";
/// How many tokens of a text Model2Vec takes, whatever a configuration says.
const MODEL2VEC_TOKENS: u64 = 512;

/// A JSON file with its name.
pub(super) struct File {
    pub name: String,
    pub json: Json,
}

/// Reads values out of files, and notes those that make no sense.
pub(super) struct Reader<'a> {
    pub misstatements: &'a mut Vec<Misstatement>,
}

impl Reader<'_> {
    /// The first of some keys that a file has.
    pub(super) fn value<'f>(file: &'f File, keys: &[&str]) -> Option<(&'f Json, String)> {
        let found = keys.iter().find_map(|key| {
            let value = file.json.get(key).filter(|v| !v.is_null())?;
            Some((value, *key))
        });
        found.map(|(value, key)| (value, format!("{} {key}", file.name)))
    }

    pub(super) fn read<T>(
        &mut self,
        file: &File,
        keys: &[&str],
        expected: &str,
        parse: impl Fn(&Json) -> Option<T>,
    ) -> Option<Fact<T>> {
        let (value, place) = Self::value(file, keys)?;
        match parse(value) {
            Some(value) => Some(Fact { value, said_by: SaidBy::File(place) }),
            None => {
                let (expected, found) = (expected.to_owned(), value.to_string());
                self.misstatements.push(Misstatement { field: place, expected, found });
                None
            }
        }
    }

    pub(super) fn number(&mut self, file: &File, keys: &[&str]) -> Option<Fact<u64>> {
        self.read(file, keys, "a whole number", |v| match v {
            Json::String(text) => text.parse().ok(),
            v => v.as_u64(),
        })
    }

    fn real(&mut self, file: &File, keys: &[&str]) -> Option<Fact<f64>> {
        self.read(file, keys, "a number", |v| match v {
            Json::String(text) => text.parse().ok(),
            v => v.as_f64(),
        })
    }

    pub(super) fn text(&mut self, file: &File, keys: &[&str]) -> Option<Fact<String>> {
        self.read(file, keys, "a text", |v| v.as_str().map(str::to_owned))
    }

    fn flag(&mut self, file: &File, keys: &[&str]) -> Option<Fact<bool>> {
        self.read(file, keys, "true or false", Json::as_bool)
    }
}

/// All that a container says of a model.
pub(super) fn describe(container: &Container) -> Result<ModelSpec, Error> {
    let mut spec = match from_files(&Attached(&container.attachments)) {
        Ok(spec) => spec,
        Err(Stop::Failed(error)) => return Err(error),
        Err(Stop::Broken(finding)) => ModelSpec {
            unreadable: vec![Misstatement::unreadable(&finding)],
            ..ModelSpec::default()
        },
    };
    metadata::add(&mut spec, container);
    add_tensors(&mut spec, container);
    add_family(&mut spec);
    Ok(spec)
}

/// What is known by the model's name. Its own counts more than that of the model it came from.
fn add_family(spec: &mut ModelSpec) {
    let base = spec.base.as_ref().map(|fact| fact.value.clone());
    let names = [spec.name.clone(), base.clone()];
    families::add(spec, &names.iter().flatten().map(String::as_str).collect::<Vec<_>>());
    if spec.name.is_none() {
        let last = base.as_deref().map(families::last_part);
        spec.name = last.filter(|name| !name.is_empty()).map(str::to_owned);
    }
}

/// What the files of a model say.
pub(super) fn from_files(files: &dyn ModelFiles) -> Result<ModelSpec, Stop> {
    let open = |name: &str| Ok::<_, Stop>(File { name: name.to_owned(), json: files.json(name)? });
    let mut spec = ModelSpec::default();
    let mut misstatements = Vec::new();
    let mut r = Reader { misstatements: &mut misstatements };
    let config = open(CONFIG)?;
    read_config(&mut spec, &config, &mut r);
    let modules = open(MODULES)?;
    spec.modules = modules.json.as_array().into_iter().flatten().map(module).collect();
    let pooling = spec.modules.iter().find(|m| m.kind == "Pooling" && !m.path.is_empty());
    let pooling = open(&format!("{}/config.json", pooling.map_or(POOLING, |m| &m.path)))?;
    read_pooling(&mut spec, &pooling, &modules, &mut r);
    let tokenizer = open(TOKENIZER_CONFIG)?;
    spec.max_tokens = r.number(&open(LIMITS)?, &["max_seq_length"]).or_else(|| {
        // Where nobody limits it, transformers writes a number that is none: 1e30.
        let limit = tokenizer.json.get("model_max_length")?.as_u64()?;
        let said_by = SaidBy::File(format!("{TOKENIZER_CONFIG} model_max_length"));
        Some(Fact { value: limit, said_by })
    });
    read_prompts(&mut spec, &open(SENTENCE)?, &mut r);
    spec.score_activation = score_activation(&config, &open(SENTENCE)?);
    spec.matryoshka = [&config, &open(SENTENCE)?]
        .into_iter()
        .find_map(|file| Reader::value(file, &["matryoshka_dimensions", "matryoshka_dims"]))
        .map(|(list, _)| list.as_array().into_iter().flatten().filter_map(Json::as_u64).collect())
        .unwrap_or_default();
    spec.tokenizer = read_tokenizer(files, &tokenizer, &mut r)?;
    read_static(&mut spec, &config, &mut r);
    spec.misstatements = misstatements;
    Ok(spec)
}

/// config.json, in the words of the several families that have one.
fn read_config(spec: &mut ModelSpec, config: &File, r: &mut Reader) {
    // Of any type: a name that is none says nothing, and nobody depends on it.
    let name = config.json["_name_or_path"].as_str().filter(|name| !name.is_empty());
    let said_by = || SaidBy::File(format!("{CONFIG} _name_or_path"));
    spec.base = name.map(|name| Fact { value: name.to_owned(), said_by: said_by() });
    spec.class = config.json["architectures"][0].as_str().map(str::to_owned);
    spec.remote_code = config.json["auto_map"]["AutoModel"].as_str().map(str::to_owned);
    spec.architecture = r.text(config, &["model_type"]).or_else(|| {
        // Configurations of the first years have no model_type.
        let class = spec.class.as_deref()?;
        let known = architectures().iter().find(|a| class.starts_with(a.class_prefix))?;
        let said_by = SaidBy::File(format!("{CONFIG} architectures"));
        Some(Fact { value: (*known.model_types.first()?).to_owned(), said_by })
    });
    spec.layers = r.number(config, &["num_hidden_layers", "n_layers", "n_layer"]);
    spec.hidden = r.number(config, &["hidden_size", "dim", "n_embd"]);
    spec.heads = r.number(config, &["num_attention_heads", "n_heads", "n_head"]);
    spec.key_value_heads = r.number(config, &["num_key_value_heads"]);
    spec.intermediate = r.number(config, &["intermediate_size", "hidden_dim", "n_inner"]);
    spec.vocabulary = r.number(config, &["vocab_size"]);
    spec.positions = r.number(config, &["max_position_embeddings", "n_positions"]);
    if spec.known_architecture().is_some_and(|known| known.pads_positions) {
        let behind = |pad: Fact<u64>| Fact { value: pad.value.saturating_add(1), ..pad };
        // Their libraries take 1 where a configuration does not say it.
        let pad = r.number(config, &["pad_token_id"]).unwrap_or_else(|| Fact::assumed(1));
        spec.first_position = behind(pad);
    }
    let activations = ["hidden_act", "activation", "activation_function", "hidden_activation"];
    if let Some(name) = r.text(config, &activations) {
        spec.activation = Fact { value: Activation::from_name(&name.value), said_by: name.said_by };
    }
    let epsilons = ["layer_norm_eps", "layer_norm_epsilon", "norm_eps", "rms_norm_eps"];
    if let Some(epsilon) = r.real(config, &epsilons) {
        spec.epsilon = epsilon;
    }
    rope::read(spec, config, r);
    let named = r.text(config, &["position_embedding_type"]);
    let buckets = r.number(config, &["relative_attention_num_buckets"]);
    spec.position_scheme = if let Some(named) = named {
        Fact { value: Positions::from_name(&named.value), said_by: named.said_by }
    } else if let Some(buckets) = buckets {
        Fact { value: Positions::RelativeBuckets, said_by: buckets.said_by }
    } else if let Some(theta) = &spec.rope_theta {
        Fact { value: Positions::Rotary, said_by: theta.said_by.clone() }
    } else {
        let known = spec.known_architecture().map(|known| known.positions.clone());
        Fact::assumed(known.unwrap_or_default())
    };
    let fixed = spec.known_architecture().map_or(&[][..], |known| known.fixed);
    spec.unusual = fixed.iter().filter_map(|(key, only)| unusual(config, key, only)).collect();
}

/// A setting that has another value than the only one that is known.
fn unusual(config: &File, key: &str, only: &str) -> Option<Misstatement> {
    let (value, place) = Reader::value(config, &[key])?;
    let found = value.to_string();
    // As a number, 1 is 1.0.
    let same = found == only || value.as_f64().is_some_and(|v| only.parse() == Ok(v));
    (!same).then(|| Misstatement { field: place, expected: only.to_owned(), found })
}

/// What is different in models that are a table of the tokens' vectors.
fn read_static(spec: &mut ModelSpec, config: &File, r: &mut Reader) {
    let first = spec.modules.first().map(|module| module.kind.as_str());
    if spec.architecture.is_none() && first == Some(STATIC_MODULE) {
        let id = STATIC_EMBEDDING.model_types.first().copied().unwrap_or_default();
        let said_by = SaidBy::File(MODULES.to_owned());
        spec.architecture = Some(Fact { value: id.to_owned(), said_by });
    }
    let Some(known) = spec.known_architecture().filter(|known| known.is_static()) else { return };
    let said_by =
        || spec.architecture.as_ref().map(|fact| fact.said_by.clone()).unwrap_or_default();
    spec.pooling = Fact { value: vec![Pooling::Mean], said_by: said_by() };
    spec.position_scheme = Fact { value: known.positions.clone(), said_by: said_by() };
    if std::ptr::eq(known, &MODEL2VEC) {
        spec.max_tokens = Some(Fact { value: MODEL2VEC_TOKENS, said_by: said_by() });
        // Its library asks nobody else.
        spec.normalize =
            r.flag(config, &["normalize"]).unwrap_or(Fact { value: false, said_by: said_by() });
        // `hidden_dim` is what was asked for when it was made; the table may have fewer columns.
        spec.intermediate = None;
    }
}

fn module(entry: &Json) -> Module {
    let class = entry["type"].as_str().unwrap_or("?");
    Module {
        kind: class.rsplit('.').next().unwrap_or(class).to_owned(),
        path: entry["path"].as_str().unwrap_or_default().to_owned(),
    }
}

fn read_pooling(spec: &mut ModelSpec, file: &File, modules: &File, r: &mut Reader) {
    spec.dimensions = r.number(file, &["word_embedding_dimension", "embedding_dimension"]);
    if let Some((modes, key)) = pooling_modes(&file.json) {
        let said_by = SaidBy::File(format!("{} {key}", file.name));
        spec.pooling = Fact { value: modes, said_by };
    }
    if let Some(include) = r.flag(file, &["include_prompt"]) {
        spec.pools_prompt = include;
    }
    if modules.json.is_array() {
        let value = spec.modules.iter().any(|m| m.kind.ends_with("Normalize"));
        spec.normalize = Fact { value, said_by: SaidBy::File(MODULES.to_owned()) };
    }
}

/// The new key `pooling_mode`, or the older flags of which one is true.
fn pooling_modes(pooling: &Json) -> Option<(Vec<Pooling>, &'static str)> {
    const MODE: &str = "pooling_mode";
    match &pooling[MODE] {
        Json::String(mode) => return Some((vec![Pooling::from_name(mode)], MODE)),
        Json::Array(modes) => {
            let names = modes.iter().filter_map(Json::as_str);
            return Some((names.map(Pooling::from_name).collect(), MODE));
        }
        _ => {}
    }
    let known = [
        ("pooling_mode_mean_tokens", Pooling::Mean),
        ("pooling_mode_cls_token", Pooling::Cls),
        ("pooling_mode_max_tokens", Pooling::Max),
        ("pooling_mode_mean_sqrt_len_tokens", Pooling::MeanSqrtLen),
        ("pooling_mode_weightedmean_tokens", Pooling::WeightedMean),
        ("pooling_mode_lasttoken", Pooling::LastToken),
    ];
    // Flags of other modes keep their names, so that nobody takes them for one of these.
    let flags = pooling.as_object()?.iter();
    let on = flags.filter(|(flag, value)| flag.starts_with("pooling_mode_") && **value == true);
    let mode = |flag: &String| match known.iter().find(|(k, _)| k == flag) {
        Some((_, mode)) => mode.clone(),
        None => Pooling::Other(flag.clone()),
    };
    Some((on.map(|(flag, _)| mode(flag)).collect(), "pooling_mode_*"))
}

fn read_prompts(spec: &mut ModelSpec, file: &File, r: &mut Reader) {
    let prompts = file.json["prompts"].as_object().into_iter().flatten();
    spec.prompts = prompts
        .filter_map(|(name, text)| {
            Some(Prompt { name: name.clone(), text: text.as_str()?.to_owned() })
        })
        .collect();
    spec.default_prompt = r.text(file, &["default_prompt_name"]).map(|fact| fact.value);
}

/// What the newest libraries write, those before them, and the first ones.
fn score_activation(config: &File, sentence: &File) -> Option<Fact<String>> {
    let places = [
        (sentence, "/activation_fn"),
        (config, "/sentence_transformers/activation_fn"),
        (config, "/sbert_ce_default_activation_function"),
    ];
    places.into_iter().find_map(|(file, place)| {
        let value = file.json.pointer(place)?.as_str()?.to_owned();
        let said_by = SaidBy::File(format!("{} {}", file.name, place[1..].replace('/', " ")));
        Some(Fact { value, said_by })
    })
}

/// What the tensors and the vocabulary show, where nobody said it; and then what is usual.
fn add_tensors(spec: &mut ModelSpec, container: &Container) {
    let shown = architectures().iter().find(|a| a.is_in(container));
    if let (None, Some(shown)) = (&spec.architecture, shown) {
        let id = shown.model_types.first().copied().unwrap_or_default();
        spec.architecture = Some(Fact::from_content(id.to_owned()));
    }
    match &container.vocabulary {
        None if spec.tokenizer.as_ref().is_some_and(|t| t.kind.is_assumed()) => {
            spec.tokenizer = None;
        }
        None => {}
        Some(vocabulary) => {
            let tokenizer = spec.tokenizer.get_or_insert_default();
            tokenizer.tokens = Some(vocabulary.len() as u64);
            tokenizer.special.clone_from(&vocabulary.special);
            // A vocabulary without any word about it is used as BERT's are.
            if tokenizer.kind.is_assumed() {
                tokenizer.kind = Fact::assumed(WORD_PIECE.to_owned());
            }
        }
    }
    let Some(known) = spec.known_architecture() else { return };
    if known.pads_positions && spec.first_position.value == 0 {
        spec.first_position = Fact::assumed(2);
    }
    if spec.position_scheme.is_assumed() {
        spec.position_scheme = Fact::assumed(known.positions.clone());
    }
    let sizes = known.sizes(container);
    for (slot, found) in [
        (&mut spec.layers, sizes.layers),
        (&mut spec.hidden, sizes.hidden),
        (&mut spec.intermediate, sizes.intermediate),
        (&mut spec.vocabulary, sizes.vocabulary),
        (&mut spec.positions, sizes.positions),
        (&mut spec.heads, sizes.heads),
    ] {
        if slot.is_none() {
            *slot = found.map(Fact::from_content);
        }
    }
    add_usual(spec, known);
}

/// What is usual for an architecture, where neither files nor tensors say it.
fn add_usual(spec: &mut ModelSpec, known: &Architecture) {
    if spec.heads.is_none() {
        let hidden = spec.hidden.as_ref().map(|fact| fact.value);
        spec.heads = hidden.and_then(|n| known.usual_heads(n)).map(Fact::assumed);
    }
    if spec.dimensions.is_none() {
        spec.dimensions = spec.hidden.as_ref().map(|fact| Fact::assumed(fact.value));
    }
    if spec.max_tokens.is_none() {
        let first = spec.first_position.value;
        let usable = |fact: &Fact<u64>| Fact::assumed(fact.value.saturating_sub(first));
        spec.max_tokens = spec.positions.as_ref().map(usable);
    }
}

/// What a model's own files say of its tokenizer, where others can't be read.
pub(crate) fn tokenizer_facts(files: &dyn ModelFiles) -> Result<TokenizerFacts, Stop> {
    let config = File { name: TOKENIZER_CONFIG.to_owned(), json: Json::Null };
    let mut r = Reader { misstatements: &mut Vec::new() };
    Ok(read_tokenizer(files, &config, &mut r)?.unwrap_or_default())
}

fn read_tokenizer(
    files: &dyn ModelFiles,
    config: &File,
    r: &mut Reader,
) -> Result<Option<TokenizerFacts>, Stop> {
    let mut facts = TokenizerFacts::default();
    if files.has(TOKENIZER) {
        facts.kind.said_by = SaidBy::File(TOKENIZER.to_owned());
        // One that can't be understood says nothing; whoever needs its tokens says why.
        if let Ok(file) = TokenizerFile::parse(&files.bytes(TOKENIZER)?) {
            read_pipeline(&mut facts, &file, r);
        }
    } else if files.has("vocab.txt") {
        facts.kind =
            Fact { value: WORD_PIECE.to_owned(), said_by: SaidBy::File("vocab.txt".to_owned()) };
    } else if config.json.is_null() {
        return Ok(None);
    }
    // The tokenizer's own normalizer first. sentence_bert_config.json has a do_lower_case too, which
    // means something else.
    if facts.lower_case.is_none() {
        facts.lower_case = r.flag(config, &["do_lower_case"]);
    }
    if facts.strip_accents.is_none() {
        // Unless it is set, accents are stripped exactly when letters are lower-cased.
        facts.strip_accents = r.flag(config, &["strip_accents"]).or(facts.lower_case.clone());
    }
    if facts.split_chinese.is_none() {
        facts.split_chinese = r.flag(config, &["tokenize_chinese_chars"]);
    }
    Ok(Some(facts))
}

/// The parts that a tokenizer.json names, and the settings of a normalizer that is known.
fn read_pipeline(
    facts: &mut TokenizerFacts,
    file: &TokenizerFile<SkippedVocabulary>,
    r: &mut Reader,
) {
    let by = |place: &str| SaidBy::File(format!("{TOKENIZER} {place}"));
    let name = |name: &str, place: &str| Some(Fact { value: name.to_owned(), said_by: by(place) });
    facts.kind.value = file.model_kind().unwrap_or_default().to_owned();
    facts.tokens = file.vocabulary().map(SkippedVocabulary::tokens);
    facts.normalizer = name(file.normalizer_kind(), "normalizer");
    facts.pre_tokenizer = name(file.pre_tokenizer_kind(), "pre_tokenizer");
    facts.post_processor = name(file.post_processor_kind(), "post_processor");
    facts.steps = file.steps().unwrap_or_default();
    facts.around = match file.post_processor() {
        Ok(processor) => processor.tokens(),
        Err(_) => Vec::new(),
    };
    match file.normalizer() {
        Ok(Normalizer::Bert(bert)) => {
            let flag = |value, key| Some(Fact { value, said_by: by(&format!("normalizer {key}")) });
            facts.lower_case = flag(bert.lowercase, "lowercase");
            facts.strip_accents = bert.strip_accents.and_then(|on| flag(on, "strip_accents"));
            facts.split_chinese = flag(bert.handle_chinese_chars, "handle_chinese_chars");
        }
        Ok(_) => {}
        Err(wrong) => r.misstatements.push(wrong),
    }
}
