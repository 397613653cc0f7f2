//! Sharded models: `model.safetensors.index.json` names the shard of every tensor.

use super::super::Stop;
use super::read::{Parts, tensors_of};
use super::rules::{HUB, INDEX, SHARD};
use crate::model::{Container, Note, Value};
use crate::source::{Input, Source, mistaken};
use crate::wire::{Findings, Regions, What};
use serde_json::Value as Json;
use std::collections::{BTreeSet, HashMap, HashSet};

pub(super) const INDEX_SUFFIX: &str = ".safetensors.index.json";

/// Reads all shards that the index (`source`) names, from the folder of `input`. The index has a name
/// of its own where it is not the file that was opened.
pub(in super::super) fn read_index(
    input: &Input,
    source: &Source,
    own_name: &str,
    findings: &mut Findings,
) -> Result<Container, Stop> {
    let size = source.len();
    let malformed = |found: String| {
        INDEX
            .at(0..size)
            .in_file(own_name)
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
                .in_file(own_name)
                .field(shard)
                .expected("a file in the same folder")
                .found(e.to_string())
        })?;
        let mut own = Findings::default();
        let read = tensors_of(&file, &mut own);
        findings.append(own, shard);
        let Parts { metadata, tensors, notes, .. } = read.map_err(|stop| stop.in_file(shard))?;
        let in_shard = |note: Note| Note { text: format!("{shard}: {}", note.text).into(), ..note };
        container.notes.extend(notes.into_iter().map(in_shard));
        container.size += file.len();
        container.files.push((shard.to_owned(), file));
        for tensor in tensors {
            if wanted.get(tensor.name.as_str()) == Some(&shard) {
                wanted.remove(tensor.name.as_str());
                container.tensors.push(tensor);
            }
        }
        for (key, text) in metadata {
            if key == super::hub::KEY {
                let finding = HUB.at(0..8).in_file(shard).field("__metadata__.weighbridge");
                findings.push(finding.found("the entry in a shard, where it is not used"));
            } else if keys.insert(key.clone()) {
                container.metadata.push((key, Value::Text(text)));
            }
        }
    }
    if let Some((tensor, shard)) = wanted.iter().min() {
        return Err(SHARD
            .at(0..size)
            .in_file(own_name)
            .field(format!("weight_map {tensor:?}"))
            .expected(format!("a tensor of that name in {shard}"))
            .found("none")
            .into());
    }
    Ok(container)
}
