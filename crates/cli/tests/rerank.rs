//! `rerank`, and `search --rerank`, with small models that score pairs.

mod common;

use common::{err, out, run};
use serde_json::Value as Json;
use std::path::Path;
use weighbridge::model::Tensor;
use weighbridge::source::View;
use weighbridge::{Formats, Options, Output, Progress};
use weighbridge_testkit::data;

const QUESTION: &str = "how much does a lorry weigh";
const TEXTS: [&str; 3] =
    ["A lorry weighs between 7.5 and 44 tonnes.", "Paris is the capital of France.", "Stop!"];

fn object(at: &Path, arguments: &[&str]) -> Json {
    let output = run(at, arguments);
    assert!(output.status.success(), "{}", err(&output));
    serde_json::from_str(&out(&output)).unwrap()
}

/// The scores that the model's own library gives the first two pairs of its list, which these are.
#[test]
fn texts_are_ordered_by_their_scores() {
    for name in ["cross-encoder-bert", "cross-encoder-xlmr"] {
        let Some(model) = data::reference(&format!("families/{name}")) else { return };
        let model = model.display().to_string();
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        std::fs::write(at.join("texts.txt"), TEXTS.join("\n")).unwrap();
        let asked = [&["rerank", "-m", &model, QUESTION, "--json"], &TEXTS[..]].concat();
        let told = object(at, &asked);
        assert_eq!(told["query"], QUESTION);
        common::assert_on_the_page(&told, "rerank");
        let hits = told["hits"].as_array().unwrap();
        assert_eq!(hits.len(), 3);
        let scores: Vec<_> = hits.iter().map(|hit| hit["score"].as_f64().unwrap()).collect();
        assert!(scores.is_sorted_by(|a, b| a >= b), "{told}");
        let scored = npy(Path::new(&model).join("scores.npy"));
        for hit in hits {
            let row = hit["row"].as_u64().unwrap() as usize;
            assert_eq!(hit["text"], TEXTS[row]);
            if row < 2 {
                assert!((hit["score"].as_f64().unwrap() - scored[row]).abs() < 1e-4, "{told}");
            }
        }
        // From a file, and of those the best.
        let best =
            object(at, &["rerank", "-m", &model, QUESTION, "-i", "texts.txt", "-k", "1", "--json"]);
        assert_eq!(best["hits"], Json::from(hits[..1].to_vec()));
        let shown = run(at, &["rerank", "-m", &model, QUESTION, "-i", "texts.txt"]);
        assert_eq!(out(&shown).lines().count(), 4, "{}", out(&shown));
    }
}

/// Rows are lines, and files that are no lists of texts are not taken for such.
#[test]
fn texts_of_files_are_lines() {
    let Some(model) = data::reference("families/cross-encoder-bert") else { return };
    let model = model.display().to_string();
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("texts.txt"), format!("{}\n\n{}\n", TEXTS[0], TEXTS[1])).unwrap();
    let told = object(at, &["rerank", "-m", &model, QUESTION, "-i", "texts.txt", "--json"]);
    let hits = told["hits"].as_array().unwrap();
    let row_of = |text: &str| &hits.iter().find(|hit| hit["text"] == text).unwrap()["row"];
    assert_eq!((row_of(TEXTS[0]), row_of(""), row_of(TEXTS[1])), (&0.into(), &1.into(), &2.into()));
    std::fs::write(at.join("texts.jsonl"), "{\"text\": \"a\"}\n{\"text\": \"b\"}\n").unwrap();
    let refused = run(at, &["rerank", "-m", &model, QUESTION, "-i", "texts.jsonl"]);
    assert!(err(&refused).contains("a text on each line is needed"), "{}", err(&refused));
    // Three tokens stand around a pair, and each of the two has one at least.
    let limited = |most| {
        let texts = ["44 tonnes", "something else"];
        run(at, &[&["rerank", "-m", &model, QUESTION, "--max-tokens", most], &texts[..]].concat())
    };
    let refused = limited("4");
    assert!(err(&refused).contains("no room for two texts"), "{}", err(&refused));
    assert!(err(&refused).contains("at least 5"), "{}", err(&refused));
    assert!(limited("5").status.success());
}

fn npy(path: impl AsRef<Path>) -> Vec<f64> {
    let container = weighbridge::open(path).unwrap();
    let values = container.tensors[0].values_f32(0, 2).unwrap();
    values.into_iter().map(f64::from).collect()
}

/// What is found by vectors is ordered anew by the model that reads both.
#[test]
fn hits_are_ordered_anew() {
    let Some(model) = data::reference("families/cross-encoder-bert") else { return };
    let Some(embedder) = data::reference("families/mpnet") else { return };
    let (model, embedder) = (model.display().to_string(), embedder.display().to_string());
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("texts.txt"), TEXTS.join("\n")).unwrap();
    let embed = ["embed", "-m", &embedder, "-i", "texts.txt", "-o", "notes.i8bin"];
    let output = run(at, &embed);
    assert!(output.status.success(), "{}", err(&output));
    let asked = ["search", "notes.i8bin", QUESTION, "--rerank", &model, "-k", "2", "--json"];
    let found = object(at, &asked);
    let ranked = [&["rerank", "-m", &model, QUESTION, "-k", "2", "--json"], &TEXTS[..]].concat();
    let ranked = object(at, &ranked);
    for (a, b) in found["hits"].as_array().unwrap().iter().zip(ranked["hits"].as_array().unwrap()) {
        assert_eq!((&a["row"], &a["score"]), (&b["row"], &b["score"]));
    }
    assert_eq!(found["hits"].as_array().unwrap().len(), 2);
}

/// Who looks at a model learns which verb it is for.
#[test]
fn inspecting_says_what_a_model_is_for() {
    let folder = common::folder_with_model();
    let at = folder.path();
    let said = |model: &str| out(&run(at, &["inspect", model]));
    for name in ["cross-encoder-bert", "cross-encoder-xlmr"] {
        let Some(model) = data::reference(&format!("families/{name}")) else { return };
        let model = model.display().to_string();
        let text = said(&model);
        assert!(text.contains("; `rerank` can use it\n") && !text.contains("`embed`"), "{text}");
        let told = object(at, &["inspect", &model, "--json"]);
        assert_eq!(told["model"]["pair_scores"], 1);
        common::assert_on_the_page(&told, "inspect");
        // In a file of another format too, and what is missing is missing for that verb.
        let output = run(at, &["convert", &model, "pairs.mcf", "--force"]);
        assert!(output.status.success(), "{}", err(&output));
        assert!(said("pairs.mcf").contains("; `rerank` can use it\n"), "{}", said("pairs.mcf"));
    }
    // Texts can't be ordered by several scores.
    write_with_two_scores(&at.join("pairs.mcf"), &at.join("two.mcf"));
    let text = said("two.mcf");
    assert!(text.contains("and `rerank` not: its classifier gives a pair 2 scores\n"), "{text}");
    assert_eq!(object(at, &["inspect", "two.mcf", "--json"])["model"]["pair_scores"], 2);
    assert!(said("model").contains("; `embed` can use it\n"), "{}", said("model"));
    let told = object(at, &["inspect", "model", "--json"]);
    assert_eq!(told["model"]["pair_scores"], Json::Null);
}

/// The same model, whose classifier gives its score twice.
fn write_with_two_scores(model: &Path, to: &Path) {
    let mut container = weighbridge::open(model).unwrap();
    for tensor in &mut container.tensors {
        if !tensor.name.starts_with("classifier.out_proj.") {
            continue;
        }
        let values = tensor.values_f32(0, tensor.count() as usize).unwrap().repeat(2);
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let (encoding, mut shape) = (tensor.encoding.clone(), tensor.shape.clone());
        shape[0] = 2;
        *tensor = Tensor::stored(&tensor.name, encoding, shape, View::owned(bytes)).unwrap();
    }
    let format = Formats::builtin().target(&to.to_string_lossy(), None).unwrap();
    let plan = format.plan(&container, &Options::default()).unwrap().accept_losses(true);
    plan.write(Output::new(to), &mut Progress::none()).unwrap();
}

#[test]
fn a_model_without_a_classifier_is_refused() {
    let folder = common::folder_with_model();
    let output = run(folder.path(), &["rerank", "-m", "model", "a", "b"]);
    assert_eq!(output.status.code(), Some(3), "{}", err(&output));
    assert!(err(&output).contains("no classifier that scores pairs"), "{}", err(&output));
}
