//! Everything that needs no files: it works from memory with any features, also with none.

use weighbridge::quantize::{Method, QuantizeSettings};
use weighbridge::search::Query;
use weighbridge::{
    Container, DiffSettings, Embeddings, Encoder, Formats, Input, Options, Progress, diff, plan,
    quantize, samples, stats, summary, verify,
};

/// A model directory in memory.
fn model() -> Input {
    let files = samples::encoder_directory().unwrap();
    let mut input = Input::in_memory("model", Vec::new(), files);
    input.is_folder = true;
    input
}

fn open(input: &Input) -> Container {
    Formats::builtin().open(input, &Options::default()).unwrap()
}

#[test]
fn a_model_is_opened_checked_converted_and_compared() {
    let input = model();
    let verdict = verify(Formats::builtin(), &input, &Options::default(), false).unwrap();
    assert!(verdict.ok, "{:?}", verdict.findings);
    let original = open(&input);
    let mut visited = 0;
    for id in ["embd", "mcf", "oinf", "safetensors"] {
        let bytes = plan(&original, id).unwrap().accept_losses(true).to_bytes().unwrap();
        let again = open(&Input::from_bytes("again", bytes));
        assert_eq!(again.format, id);
        let same = diff(&original, &again, &DiffSettings::new()).unwrap();
        assert!(same.tensors.iter().all(|t| t.same), "{id}");
        visited += same.tensors.len();
    }
    assert!(visited > 100, "{visited}");
    let told = serde_json::to_value(summary(&original, &Default::default()).unwrap()).unwrap();
    assert_eq!(told["format"], "hf");
    assert!(stats(&original.tensors[0]).unwrap().unwrap().std > 0.0);
}

#[test]
fn a_model_is_quantized_and_used() {
    let original = open(&model());
    let settings = QuantizeSettings::new(Method::from_name("q8").unwrap());
    let done = quantize(&original, &settings, &mut Progress::none()).unwrap();
    let small = open(&Input::from_bytes("small.mcf", done.plan.to_bytes().unwrap()));
    let texts = ["a truck on the road", "an empty lorry", "the king of the town"];
    let vectors = |c: &Container| Encoder::new(c, &Default::default()).unwrap().embed(&texts);
    let (exact, rounded) = (vectors(&original).unwrap(), vectors(&small).unwrap());
    for (a, b) in exact.iter().zip(&rounded) {
        let cosine: f32 = a.iter().zip(b).map(|(a, b)| a * b).sum();
        assert!(cosine > 0.99, "{cosine}");
    }
}

#[test]
fn words_are_found_near_each_other() {
    let container = samples::word_embeddings();
    let bytes = plan(&container, "finalfusion").unwrap().to_bytes().unwrap();
    let words = Embeddings::new(&open(&Input::from_bytes("words.fifu", bytes))).unwrap();
    let truck = words.lookup("truck").unwrap().unwrap();
    assert!(truck.known);
    let query = Query { vector: &truck.vector, exclude: &[] };
    let nearest = words.nearest(&[query], 2).unwrap();
    assert_eq!(words.word(nearest[0][0].row), "truck");
    assert_eq!(words.similar("truck", 1).unwrap()[0], nearest[0][1]);
}
