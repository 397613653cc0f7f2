//! Sharded models: `model.safetensors.index.json` names the shard of every tensor.

use super::super::Stop;
use super::read::tensors_of;
use super::rules::{HUB, INDEX, SHARD};
use crate::model::{Container, Value};
use crate::source::{Input, Source, mistaken};
use crate::wire::{Findings, Regions, What};
use serde_json::Value as Json;
use std::collections::{BTreeSet, HashMap, HashSet};

pub(super) const INDEX_SUFFIX: &str = ".safetensors.index.json";

/// Reads all shards that the index (`source`) names, from the folder of `input`.
pub(in super::super) fn read_index(
    input: &Input,
    source: &Source,
    findings: &mut Findings,
) -> Result<Container, Stop> {
    let size = source.len();
    let malformed = |found: String| {
        INDEX
            .at(0..size)
            .field("weight_map")
            .expected("an object of tensor and shard names")
            .found(found)
    };
    if let Some((what, advice)) = mistaken::recognise(source.head()?) {
        return Err(malformed(what.to_owned()).hint(advice).into());
    }
    let index: Json =
        serde_json::from_slice(&source.bytes(0..size)?).map_err(|e| malformed(e.to_string()))?;
    let map = index.get("weight_map").and_then(Json::as_object);
    let map = map.ok_or_else(|| malformed("no weight_map".into()))?;
    let mut regions = Regions::default();
    regions.add(0..size, What::Structure("index"));
    let mut container = Container {
        format: "safetensors",
        layout: "sharded".to_owned(),
        sharded: true,
        size,
        regions,
        ..Container::default()
    };
    // Each tensor once, from the shard that the index names; in the order of shards and their data.
    let mut keys = HashSet::new();
    let mut wanted: HashMap<&str, &str> = HashMap::new();
    let mut shards = BTreeSet::new();
    for (tensor, shard) in map {
        let shard = shard.as_str().ok_or_else(|| malformed(format!("{tensor:?}: {shard}")))?;
        shards.insert(shard);
        wanted.insert(tensor, shard);
    }
    for shard in shards {
        let file = input.folder.open(shard).map_err(|e| {
            SHARD
                .at(0..size)
                .field(shard)
                .expected("a file in the same folder")
                .found(e.to_string())
        })?;
        let in_shard = |stop: Stop| match stop {
            Stop::Broken(mut finding) => {
                finding.field = format!("{shard}: {}", finding.field);
                Stop::Broken(finding)
            }
            failed => failed,
        };
        let (metadata, tensors, _) = tensors_of(&file, findings).map_err(in_shard)?;
        container.size += file.len();
        for tensor in tensors {
            if wanted.get(tensor.name.as_str()) == Some(&shard) {
                wanted.remove(tensor.name.as_str());
                container.tensors.push(tensor);
            }
        }
        for (key, text) in metadata {
            if key == super::hub::KEY {
                let finding = HUB.at(0..size).field(shard);
                findings.push(finding.found("the entry in a shard, where it is not used"));
            } else if keys.insert(key.clone()) {
                container.metadata.push((key, Value::Text(text)));
            }
        }
    }
    if let Some((tensor, shard)) = wanted.iter().min() {
        return Err(SHARD
            .at(0..size)
            .field(format!("weight_map {tensor:?}"))
            .expected(format!("a tensor of that name in {shard}"))
            .found("none")
            .into());
    }
    Ok(container)
}
