//! Small models of every architecture give the tokens and the vectors that the libraries give which
//! they were saved by.

use serde_json::Value as Json;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use weighbridge_encoder::{Encoder, Pooling, Precision, PromptChoice, Reranker, Settings};
use weighbridge_format::{Container, Formats, Input};
use weighbridge_testkit::data::{FAMILIES as MODELS, STATIC_MODELS as STATIC, reference};

fn open(path: &Path) -> Container {
    Formats::builtin().open(&Input::open(path).unwrap(), &Default::default()).unwrap()
}

/// The numbers of a .npy file of f32.
fn numbers(path: &Path) -> Vec<f32> {
    let container = open(path);
    let tensor = &container.tensors[0];
    tensor.values_f32(0, usize::try_from(tensor.count()).unwrap()).unwrap()
}

/// What a folder says must come out.
struct Expected {
    folder: PathBuf,
    json: Json,
    texts: Vec<String>,
}

impl Expected {
    fn read(folder: &Path) -> Expected {
        let json = std::fs::read(folder.join("expected.json")).unwrap();
        let json: Json = serde_json::from_slice(&json).unwrap();
        let texts = json["texts"].as_array().unwrap().iter();
        let texts = texts.map(|text| text.as_str().unwrap().to_owned()).collect();
        Expected { folder: folder.to_owned(), json, texts }
    }

    fn check(&self, encoder: &Encoder, texts: &[String], ids: &Json, vectors: &str, what: &str) {
        let prompt = encoder.prompt().map(|prompt| prompt.text.clone()).unwrap_or_default();
        for (text, ids) in texts.iter().zip(ids.as_array().unwrap()) {
            let mut found = Vec::new();
            let text = format!("{prompt}{text}");
            encoder.tokenizer().encode_into(&text, encoder.max_tokens(), &mut found);
            let ids = ids.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32);
            assert_eq!(found, ids.collect::<Vec<_>>(), "{what}: {text:?}");
        }
        let wanted = numbers(&self.folder.join(vectors));
        let found = encoder.embed_flat(texts).unwrap();
        assert_eq!(found.len(), wanted.len(), "{what}");
        let largest = wanted.iter().fold(0f32, |most, v| most.max(v.abs()));
        for (i, (a, b)) in found.iter().zip(&wanted).enumerate() {
            let text = &texts[i / encoder.dimensions()];
            assert!((a - b).abs() <= 1e-5 * largest, "{what}: {text:?}: {a} {b}");
        }
        // Neither the batch nor the threads change anything.
        for (text, whole) in texts.iter().zip(found.chunks_exact(encoder.dimensions())) {
            let alone = encoder.embed_flat(&[text]).unwrap();
            for (a, b) in alone.iter().zip(whole) {
                assert!((a - b).abs() <= 1e-6 * largest, "{what}: {text:?} alone: {a} {b}");
            }
        }
    }

    fn check_all(&self, model: &Path, what: &str) {
        for threads in [1, 3] {
            let settings = Settings { threads: Some(threads), ..Settings::default() };
            let encoder = Encoder::open_with(model, &settings).unwrap();
            // Static models may have none, and Model2Vec calls it otherwise.
            let limit = self.json["max_seq_length"].as_u64();
            let limit = limit.or(self.json["max_length"].as_u64()).unwrap_or(u64::from(u32::MAX));
            assert_eq!(encoder.max_tokens() as u64, limit, "{what}");
            let default = self.json["default_prompt_name"].as_str();
            let plain = default.map_or(encoder.clone(), |name| {
                encoder.with_prompt(&PromptChoice::Given(name.to_owned()))
            });
            let vectors = self.json["vectors"].as_str().unwrap();
            self.check(&plain, &self.texts, &self.json["token_ids"], vectors, what);
            for (name, said) in self.json["prompted"].as_object().into_iter().flatten() {
                // One without a text is none.
                let given = if said["prompt"] == "" { String::new() } else { name.clone() };
                let encoder = encoder.with_prompt(&PromptChoice::Given(given));
                let places = said["texts"].as_array().unwrap().iter();
                let texts: Vec<_> =
                    places.map(|i| self.texts[i.as_u64().unwrap() as usize].clone()).collect();
                let what = format!("{what}, prompt {name}");
                let vectors = said["vectors"].as_str().unwrap();
                self.check(&encoder, &texts, &said["token_ids"], vectors, &what);
            }
        }
    }
}

/// A copy of a model with the files over it that newer libraries write.
fn resaved(folder: &Path, place: &Path) {
    let copy = |from: &Path, to: &Path| {
        let mut waiting = vec![from.to_owned()];
        while let Some(folder) = waiting.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                let inside = path.strip_prefix(from).unwrap();
                if inside == Path::new("resaved") {
                    continue;
                } else if path.is_dir() {
                    std::fs::create_dir_all(to.join(inside)).unwrap();
                    waiting.push(path);
                } else {
                    std::fs::copy(&path, to.join(inside)).unwrap();
                }
            }
        }
    };
    copy(folder, place);
    copy(&folder.join("resaved"), place);
}

/// Where only first tokens are asked for, the last layer makes no others. That changes nothing.
#[test]
fn first_tokens_have_the_vectors_that_they_have_among_all() {
    let Some(folder) = reference("families/bert-pooling/cls-mean") else { return };
    let texts = Expected::read(&folder).texts;
    for (precision, threads) in [(Precision::F32, 1), (Precision::F32, 3), (Precision::Q8, 1)] {
        let settings = Settings {
            precision,
            threads: Some(threads),
            normalize: Some(false),
            ..Settings::default()
        };
        let both = Encoder::open_with(&folder, &settings).unwrap();
        let settings = Settings { pooling: Some(Pooling::Cls), ..settings };
        let first = Encoder::open_with(&folder, &settings).unwrap();
        assert_eq!(both.dimensions(), 2 * first.dimensions());
        let (both, first) = (both.embed(&texts).unwrap(), first.embed(&texts).unwrap());
        for (both, first) in both.iter().zip(&first) {
            assert_eq!(both[..first.len()], first[..], "{precision:?} {threads}");
        }
    }
}

#[test]
fn models_give_the_vectors_of_their_libraries() {
    let mut visited = 0;
    for name in MODELS {
        let Some(folder) = reference(&format!("families/{name}")) else { return };
        let expected = Expected::read(&folder);
        expected.check_all(&folder, name);
        if folder.join("resaved").is_dir() {
            let place = tempfile::tempdir().unwrap();
            let model = place.path().join("model");
            std::fs::create_dir(&model).unwrap();
            resaved(&folder, &model);
            expected.check_all(&model, &format!("{name}, resaved"));
            visited += 1;
        }
        visited += 1;
    }
    assert_eq!(visited, 33);
}

/// With rounded weights and rows, vectors are near those of the library.
#[test]
fn every_precision_is_near() {
    let mut visited = 0;
    for name in MODELS {
        let Some(folder) = reference(&format!("families/{name}")) else { return };
        let expected = Expected::read(&folder);
        let wanted = numbers(&folder.join(expected.json["vectors"].as_str().unwrap()));
        for (precision, bound) in [(Precision::Bf16, 0.999), (Precision::Q8, 0.999)] {
            for threads in [1, 2] {
                let settings =
                    Settings { threads: Some(threads), precision, ..Settings::default() };
                let encoder = Encoder::open_with(&folder, &settings).unwrap();
                let encoder = match expected.json["default_prompt_name"].as_str() {
                    Some(name) => encoder.with_prompt(&PromptChoice::Given(name.to_owned())),
                    None => encoder,
                };
                let width = encoder.dimensions();
                let found = encoder.embed_flat(&expected.texts).unwrap();
                for (a, b) in found.chunks_exact(width).zip(wanted.chunks_exact(width)) {
                    let dot =
                        |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
                    let cosine = dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
                    assert!(cosine > bound, "{name} {precision:?}: {cosine}");
                }
                visited += 1;
            }
        }
    }
    assert_eq!(visited, 4 * MODELS.len());
}

/// Models that were trained so that their first values are a vector by themselves, and say how these are
/// taken.
#[test]
fn shorter_vectors_are_made_as_published() {
    let Some(folder) = reference("families/nomic") else { return };
    let expected = Expected::read(&folder);
    let said = &expected.json["matryoshka"];
    let dimensions = said["dimension"].as_u64().unwrap() as usize;
    let settings = Settings { dimensions: Some(dimensions), ..Settings::default() };
    let wanted = numbers(&folder.join(said["vectors"].as_str().unwrap()));
    let place = tempfile::tempdir().unwrap();
    // The recipe is known by the name.
    for (name, is_known) in [("nomic-embed-text-v1.5", true), ("another", false)] {
        let model = place.path().join(name);
        std::fs::create_dir(&model).unwrap();
        resaved(&folder, &model);
        let encoder = Encoder::open_with(&model, &settings).unwrap();
        let found = encoder.embed_flat(&expected.texts).unwrap();
        assert_eq!(found.len(), wanted.len());
        let most = found.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert_eq!(most <= 1e-5, is_known, "{name}: {most}");
        // Nobody said that so few values are enough.
        let notes: Vec<_> = encoder.assumed().iter().map(ToString::to_string).collect();
        assert!(notes.contains(&"16 of 32 values are enough".to_owned()), "{notes:?}");
        let spec = encoder.spec();
        assert_eq!(spec.matryoshka.contains(&256), is_known);
    }
    let whole = Encoder::open(&folder).unwrap();
    assert!(whole.assumed().is_empty());
}

#[test]
fn static_models_give_the_vectors_of_their_libraries() {
    let mut visited = 0;
    for name in STATIC {
        let Some(folder) = reference(&format!("families/static/{name}")) else { return };
        let expected = Expected::read(&folder);
        assert!(expected.texts.len() > 45, "{name}");
        expected.check_all(&folder, name);
        visited += 1;
        // Another pooling goes through the queue that other models go through; this one has the same
        // direction.
        let vectors = |pooling: Pooling| {
            let normalize = Some(true);
            let settings = Settings { pooling: Some(pooling), normalize, ..Settings::default() };
            Encoder::open_with(&folder, &settings).unwrap().embed_flat(&expected.texts).unwrap()
        };
        let pairs = vectors(Pooling::Mean).into_iter().zip(vectors(Pooling::MeanSqrtLen));
        for (a, b) in pairs {
            assert!((a - b).abs() <= 1e-6, "{name}: {a} {b}");
        }
        if name == "sentence-transformers" {
            let place = tempfile::tempdir().unwrap();
            let model = place.path().join("model");
            std::fs::create_dir(&model).unwrap();
            resaved(&folder, &model);
            expected.check_all(&model, "static, resaved");
            // As older versions have it: the table in a folder of its own.
            let own = model.join("0_StaticEmbedding");
            std::fs::create_dir(&own).unwrap();
            for file in ["model.safetensors", "tokenizer.json"] {
                std::fs::rename(model.join(file), own.join(file)).unwrap();
            }
            let modules = std::fs::read_to_string(folder.join("modules.json")).unwrap();
            let modules = modules.replace("\"path\": \"\"", "\"path\": \"0_StaticEmbedding\"");
            assert!(modules.contains("0_Static"), "{modules}");
            std::fs::write(model.join("modules.json"), modules).unwrap();
            expected.check_all(&model, "static, in a folder");
            visited += 2;
        }
    }
    assert_eq!(visited, 8);
}

/// What the library's own tests expect of its model.
#[test]
fn model2vec_gives_what_its_rust_library_gives() {
    let Some(folder) = reference("families/static/model2vec-rs/test-model-float32") else { return };
    let encoder = Encoder::open(&folder).unwrap();
    let long = vec!["hello"; 1000].join(" ");
    for (text, file) in [("hello world", "short"), (long.as_str(), "long")] {
        let json = std::fs::read(folder.join(format!("embeddings_{file}.json"))).unwrap();
        let wanted: Vec<Vec<f32>> = serde_json::from_slice(&json).unwrap();
        let found = encoder.embed_flat(&[text]).unwrap();
        for (a, b) in found.iter().zip(&wanted[0]) {
            assert!((a - b).abs() < 1e-5, "{file}: {found:?} {wanted:?}");
        }
    }
    assert_eq!(encoder.count_cut(&["hello world", &long]), 1);
}

/// Pairs of texts have the tokens and the scores of the library, in any batch.
#[test]
fn rerankers_give_the_scores_of_their_library() {
    let mut visited = 0;
    for name in ["cross-encoder-bert", "cross-encoder-xlmr"] {
        let Some(folder) = reference(&format!("families/{name}")) else { return };
        let place = tempfile::tempdir().unwrap();
        let newer = place.path().join("model");
        std::fs::create_dir(&newer).unwrap();
        resaved(&folder, &newer);
        for model in [&folder, &newer] {
            check_scores(&folder, model, name);
            visited += 1;
        }
    }
    assert_eq!(visited, 4);
}

fn check_scores(folder: &Path, model: &Path, what: &str) {
    let json = std::fs::read(folder.join("pairs.json")).unwrap();
    let json: Json = serde_json::from_slice(&json).unwrap();
    let text = |json: &Json| json.as_str().unwrap().to_owned();
    let pairs = json["pairs"].as_array().unwrap().iter();
    let pairs: Vec<_> = pairs.map(|pair| (text(&pair[0]), text(&pair[1]))).collect();
    let numbers_of = |list: &Json| -> Vec<u32> {
        list.as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as u32).collect()
    };
    let reranker = Reranker::open(model).unwrap();
    assert_eq!(reranker.max_tokens() as u64, json["max_length"].as_u64().unwrap(), "{what}");
    for (i, (first, second)) in pairs.iter().enumerate() {
        let mut ids = Vec::new();
        let most = reranker.max_tokens();
        let kinds = reranker.tokenizer().encode_pair_into(first, second, most, &mut ids);
        assert_eq!(ids, numbers_of(&json["token_ids"][i]), "{what}: {first:?} {second:?}");
        let found: Vec<u32> = (0..ids.len()).map(|place| u32::from(place >= kinds)).collect();
        let wanted = match &json["token_type_ids"] {
            Json::Null => vec![0; ids.len()],
            types => numbers_of(&types[i]),
        };
        assert_eq!(found, wanted, "{what}: {first:?} {second:?}");
    }
    let wanted = numbers(&folder.join(json["scores"].as_str().unwrap()));
    let found = reranker.score(&pairs).unwrap();
    assert_eq!(found.len(), wanted.len());
    let largest = wanted.iter().fold(0f32, |most, v| most.max(v.abs()));
    for (((a, b), pair), place) in found.iter().zip(&wanted).zip(&pairs).zip(0..) {
        assert!((a - b).abs() <= 1e-5 * largest, "{what}: {pair:?}: {a} {b}");
        let alone = reranker.score(&pairs[place..=place]).unwrap()[0];
        assert!((alone - a).abs() <= 1e-6 * largest, "{what}: {pair:?} alone: {alone} {a}");
    }
    // Ranking is sorting by these scores.
    let (question, _) = &pairs[0];
    let texts: Vec<_> = pairs.iter().map(|(_, text)| text.as_str()).collect();
    let ranked = reranker.rank(question, &texts).unwrap();
    assert_eq!(ranked.len(), texts.len());
    assert!(ranked.is_sorted_by(|a, b| a.score >= b.score), "{what}");
    let best = reranker.score(&[(question.as_str(), texts[ranked[0].row])]).unwrap()[0];
    assert!((best - ranked[0].score).abs() <= 1e-6 * largest, "{what}");
}

/// Whoever waits for scores hears how many there are, and can stop waiting.
#[test]
fn scoring_tells_how_far_it_is_and_can_be_ended() {
    let Some(folder) = reference("families/cross-encoder-bert") else { return };
    // Alone, this thread computes every batch and tells of each.
    let settings = Settings { threads: Some(1), ..Settings::default() };
    let reranker = Reranker::new(&open(&folder), &settings).unwrap();
    let texts: Vec<_> = (0..2000).map(|i| format!("lorry {i} weighs {} tonnes", i % 44)).collect();
    let mut told = Vec::new();
    let all = reranker.rank_telling("how heavy is a lorry", &texts, &mut |done| {
        told.push(done);
        ControlFlow::Continue(())
    });
    assert_eq!(all.unwrap(), reranker.rank("how heavy is a lorry", &texts).unwrap());
    assert!(told.len() > 2 && told[0] == 0 && told.is_sorted() && told.iter().all(|n| *n < 2000));
    let pairs: Vec<_> = texts.iter().map(|text| ("how heavy is a lorry", text.as_str())).collect();
    let mut calls = 0;
    let ended = reranker.score_telling(&pairs, &mut |done| {
        calls += 1;
        if done > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(ended, Err(weighbridge_encoder::Error::Cancelled)), "{ended:?}");
    assert!(calls < told.len(), "{calls}");
    assert_eq!(reranker.score(&pairs[..1]).unwrap().len(), 1);
}

/// A model for vectors has no classifier, and says so.
#[test]
fn models_without_a_classifier_score_nothing() {
    let Some(folder) = reference("families/mpnet") else { return };
    let error = Reranker::open(folder).unwrap_err().to_string();
    assert!(error.contains("no classifier that scores pairs"), "{error}");
}
