//! Small models of every architecture in every container: a model gives the same vectors wherever it is, or
//! says why it can't.

mod common;

use common::{convert, format_of, quantize_file, verdict};
use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use weighbridge::encoder::PromptChoice;
use weighbridge::quantize::{Method, QuantizeSettings};
use weighbridge::{Edit, Encoder, Options, Output, Progress, model_summary, open};
use weighbridge_testkit::data::{FAMILIES as MODELS, reference};

/// A model with the vectors that it must give.
struct Known {
    name: &'static str,
    folder: PathBuf,
    texts: Vec<String>,
    /// The prompt that is used by itself.
    prompt: Option<String>,
    vectors: Vec<f32>,
}

impl Known {
    fn all() -> Option<Vec<Known>> {
        MODELS.into_iter().map(Known::read).collect()
    }

    fn read(name: &'static str) -> Option<Known> {
        let folder = reference(&format!("families/{name}"))?;
        let json = std::fs::read(folder.join("expected.json")).unwrap();
        let json: Json = serde_json::from_slice(&json).unwrap();
        let texts = json["texts"].as_array().unwrap().iter();
        let vectors = open(folder.join(json["vectors"].as_str().unwrap())).unwrap();
        let tensor = &vectors.tensors[0];
        Some(Known {
            name,
            texts: texts.map(|text| text.as_str().unwrap().to_owned()).collect(),
            prompt: json["default_prompt_name"].as_str().map(str::to_owned),
            vectors: tensor.values_f32(0, tensor.count() as usize).unwrap(),
            folder,
        })
    }

    /// The vectors of a copy of the model.
    fn embed(&self, encoder: Encoder) -> Vec<f32> {
        let encoder = match &self.prompt {
            Some(name) => encoder.with_prompt(&PromptChoice::Given(name.clone())),
            None => encoder.without_prompt(),
        };
        encoder.embed_flat(&self.texts).unwrap()
    }

    fn check(&self, copy: &Path) {
        let found = self.embed(Encoder::open(copy).unwrap());
        let name = self.name;
        assert_eq!(found.len(), self.vectors.len(), "{name} in {}", copy.display());
        let largest = self.vectors.iter().fold(0f32, |most, v| most.max(v.abs()));
        for (a, b) in found.iter().zip(&self.vectors) {
            assert!((a - b).abs() <= 1e-5 * largest, "{name} in {}: {a} {b}", copy.display());
        }
    }

    /// The worst cosine of vectors with those they should be.
    fn worst_cosine(&self, copy: &Path) -> f32 {
        let encoder = Encoder::open(copy).unwrap();
        let width = encoder.dimensions();
        let found = self.embed(encoder);
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
        let pairs = found.chunks_exact(width).zip(self.vectors.chunks_exact(width));
        pairs.map(|(a, b)| dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()).fold(1.0, f32::min)
    }
}

/// Containers that hold the files of a model hold all of it.
#[test]
fn models_are_the_same_in_every_container() {
    let Some(models) = Known::all() else { return };
    let place = tempfile::tempdir().unwrap();
    let mut visited = 0;
    for model in &models {
        // `inspect` says so, and `verify` finds nothing.
        let summary = model_summary(&open(&model.folder).unwrap()).unwrap().unwrap();
        assert!(summary.lacks.is_empty(), "{}: {:?}", model.name, summary.lacks);
        for name in ["model.safetensors", "model.mcf", "model.oinf"] {
            let copy = place.path().join(name);
            convert(&model.folder, &copy, None, &Edit::default()).unwrap();
            model.check(&copy);
            let summary = model_summary(&open(&copy).unwrap()).unwrap().unwrap();
            assert!(summary.lacks.is_empty(), "{} {name}: {:?}", model.name, summary.lacks);
            let found = verdict(&copy);
            assert!(found.ok, "{} {name}: {found:?}", model.name);
            visited += 1;
        }
    }
    assert_eq!(visited, 51);
}

/// Weights that are rounded with an eye to what they are multiplied with.
#[test]
fn every_model_can_be_quantized() {
    let Some(models) = Known::all() else { return };
    let place = tempfile::tempdir().unwrap();
    let mut visited = 0;
    for model in &models {
        for (method, bound) in [("q8", 0.999), ("k4", 0.8)] {
            let copy = place.path().join(format!("{method}.mcf"));
            let settings = QuantizeSettings::new(Method::from_name(method).unwrap());
            let report = quantize_file(&model.folder, &copy, &settings).unwrap();
            let calibrated = report.calibrated.expect("the model can be run");
            let worst = model.worst_cosine(&copy);
            let (name, mean) = (model.name, calibrated.mean_cosine);
            assert!(worst > bound, "{name} {method}: {worst}, on average {mean}");
            visited += 1;
        }
    }
    assert_eq!(visited, 34);
}

/// EMBD has no place for the files of a model: what they say more than its metadata is listed as lost. A
/// file that lacks it is refused, or gives the same vectors.
#[test]
fn embd_never_gives_other_vectors() {
    let Some(models) = Known::all() else { return };
    let place = tempfile::tempdir().unwrap();
    let (mut same, mut refused) = (Vec::new(), Vec::new());
    for model in &models {
        let copy = place.path().join("model.weights");
        let plan = format_of("embd").plan(&open(&model.folder).unwrap(), &Options::default());
        let plan = plan.unwrap();
        let is_whole = plan.report.losses.is_empty();
        let plan = plan.accept_losses(true);
        plan.write(Output::new(&copy).overwrite(true), &mut Progress::none()).unwrap();
        match Encoder::open(&copy) {
            Ok(_) => {
                model.check(&copy);
                same.push(model.name);
            }
            Err(why) => {
                assert!(!is_whole, "{}: {why}", model.name);
                let summary = model_summary(&open(&copy).unwrap()).unwrap();
                assert!(summary.is_none_or(|s| !s.lacks.is_empty()), "{}: {why}", model.name);
                refused.push(model.name);
            }
        }
    }
    let pooling =
        ["cls-mean", "lasttoken", "max", "mean-no-prompt", "mean-sqrt-len", "weightedmean"];
    let pooling = pooling.map(|name| format!("bert-pooling/{name}"));
    assert_eq!(same[0], "distilbert");
    assert_eq!(same[1..], pooling);
    let others = ["xlmr-unigram", "bert-unigram", "mpnet", "roberta-bpe", "bert-dense"];
    let rotary = ["nomic", "modernbert", "modernbert-mean", "gte-new", "gte-new-multilingual"];
    assert_eq!(refused, [others, rotary].concat());
}

/// What can't be used is named, in the description and by who tries.
#[test]
fn decoders_are_refused_by_name() {
    for (name, kind) in [("qwen3", "qwen3"), ("gemma3-embedding", "gemma3_text")] {
        let Some(folder) = reference(&format!("families/{name}")) else { return };
        let container = open(&folder).unwrap();
        let summary = model_summary(&container).unwrap().unwrap();
        let lack = format!("architecture {kind}");
        assert!(summary.lacks.contains(&lack), "{name}: {:?}", summary.lacks);
        let error = Encoder::open(&folder).unwrap_err().to_string();
        assert!(error.contains(&format!("the architecture \"{kind}\"")), "{name}: {error}");
    }
}
