//! Whether a model is of BERT's family at all, by what its files say of themselves.

use serde_json::Value as Json;
use weighbridge_format::{Container, Error};

/// Modules of sentence-transformers that are understood.
const MODULES: [&str; 3] = ["Transformer", "Pooling", "Normalize"];

/// Refuses models that would give wrong vectors. Files without such descriptions are known by their
/// tensors alone.
pub(crate) fn check(container: &Container) -> Result<(), Error> {
    let config = json(container, "config.json")?;
    let kind = config["model_type"].as_str().or_else(|| container.text("arch"));
    if let Some(kind) = kind.filter(|kind| *kind != "bert") {
        let name = config["architectures"][0].as_str().unwrap_or(kind);
        return Err(Error::unsupported(
            format!("architecture {kind}"),
            format!("{name} is not of BERT's architecture (its model type is \"{kind}\")"),
            "models whose config.json says \"model_type\": \"bert\" can be used",
        ));
    }
    let places = config["position_embedding_type"].as_str().unwrap_or("absolute");
    if places != "absolute" {
        let what = format!("position embeddings of type \"{places}\" are not known");
        let name = format!("position embeddings {places}");
        return Err(Error::unsupported(name, what, "only absolute ones, as in BERT"));
    }
    for module in json(container, "modules.json")?.as_array().into_iter().flatten() {
        let name = module["type"].as_str().unwrap_or("?").rsplit('.').next().unwrap_or("?");
        if !MODULES.contains(&name) {
            return Err(Error::unsupported(
                format!("module {name}"),
                format!("modules.json has a {name} behind the model, which is not known"),
                "Transformer, Pooling and Normalize are",
            ));
        }
    }
    Ok(())
}

/// A file that travels with the model; null when there is none that is JSON.
fn json(container: &Container, name: &str) -> Result<Json, Error> {
    let file = container.attachments.iter().find(|a| a.name == name);
    let text = file.map(|a| a.data.load()).transpose()?;
    Ok(text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default())
}
