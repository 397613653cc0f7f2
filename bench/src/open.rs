//! Opening a file and listing its tensors, as library calls.

use crate::Outcome;
use crate::files::Files;
use crate::table::{Row, time_ratio};
use crate::timing::in_turn;
use safetensors::SafeTensors;
use std::fs::File;
use std::hint::black_box;
use std::path::Path;

const ROUNDS: usize = 1000;
/// The tensor whose data is touched; all files have it.
const TOUCHED: &str = "embeddings.LayerNorm.weight";

pub fn measure(files: &Files) -> Outcome<Vec<Row>> {
    let [safetensors, embd, bare, peer] = in_turn(
        ROUNDS,
        [
            &mut || ours(&files.model),
            &mut || ours(&files.model_embd),
            &mut || ours(&files.model_embd_bare),
            &mut || crate_safetensors(&files.model),
        ],
    );
    Ok(vec![
        time_ratio("open safetensors; peer: crate safetensors", &safetensors, &peer, 1.0),
        time_ratio("open EMBD; peer: as above", &embd, &peer, 2.0),
        time_ratio("open EMBD without vocabulary; peer: as above", &bare, &peer, 2.0),
    ])
}

fn ours(path: &Path) {
    let container = weighbridge::open(path).expect("the file opens");
    for tensor in &container.tensors {
        black_box((&tensor.name, &tensor.shape));
    }
    let view = container.tensor(TOUCHED).and_then(|t| t.view()).expect("the tensor is there");
    black_box(view.resident().expect("the file is mapped")[0]);
}

fn crate_safetensors(path: &Path) {
    let file = File::open(path).expect("the file opens");
    // SAFETY: nothing writes to the file while it is measured.
    let map = unsafe { memmap2::Mmap::map(&file) }.expect("the file can be mapped");
    let tensors = SafeTensors::deserialize(&map).expect("the header is right");
    for (name, view) in tensors.iter() {
        black_box((name, view.shape()));
    }
    let view = tensors.tensor(TOUCHED).expect("the tensor is there");
    black_box(view.data()[0]);
}
