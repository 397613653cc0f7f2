//! candle as a peer: a process that answers requests as `encode_peers.py` does.
//!
//! `weighbridge-bench-candle MODEL_FOLDER` answers requests from standard input; with a text behind
//! it, it embeds that one and ends. Threads are those of `RAYON_NUM_THREADS`, which candle reads.

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};
use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Instant;
use tokenizers::{PaddingParams, Tokenizer, TruncationParams};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// As the other peers: what fits a batch is padded to its longest text.
const BATCH: usize = 32;
const TOKENS: usize = 256;

struct Encoder {
    model: BertModel,
    tokenizer: Tokenizer,
}

impl Encoder {
    fn open(folder: &Path) -> Outcome<Encoder> {
        let config: Config = serde_json::from_slice(&std::fs::read(folder.join("config.json"))?)?;
        let weights = folder.join("model.safetensors");
        // Mapping is what candle's own example does; nobody writes to the file meanwhile.
        let weights =
            unsafe { VarBuilder::from_mmaped_safetensors(&[weights], DType::F32, &Device::Cpu)? };
        let model = BertModel::load(weights, &config)?;
        let mut tokenizer = Tokenizer::from_file(folder.join("tokenizer.json"))?;
        tokenizer.with_padding(Some(PaddingParams::default()));
        let truncation = TruncationParams { max_length: TOKENS, ..Default::default() };
        tokenizer.with_truncation(Some(truncation))?;
        Ok(Encoder { model, tokenizer })
    }

    /// Texts of similar length share a batch, which is the way to spare padding.
    fn embed(&self, texts: &[String]) -> Outcome<Vec<Vec<f32>>> {
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by_key(|&i| texts[i].len());
        let mut made = vec![Vec::new(); texts.len()];
        for part in order.chunks(BATCH) {
            let batch: Vec<&str> = part.iter().map(|&i| texts[i].as_str()).collect();
            let encodings = self.tokenizer.encode_batch(batch, true)?;
            let tensor = |of: fn(&tokenizers::Encoding) -> &[u32]| {
                let rows: Vec<_> = encodings
                    .iter()
                    .map(|e| Tensor::new(of(e), &Device::Cpu))
                    .collect::<Result<_, _>>()?;
                Tensor::stack(&rows, 0)
            };
            let ids = tensor(|e| e.get_ids())?;
            let mask = tensor(|e| e.get_attention_mask())?;
            let hidden = self.model.forward(&ids, &ids.zeros_like()?, Some(&mask))?;
            let mask = mask.to_dtype(DType::F32)?.unsqueeze(2)?;
            let mean = hidden.broadcast_mul(&mask)?.sum(1)?.broadcast_div(&mask.sum(1)?)?;
            let length = mean.sqr()?.sum_keepdim(1)?.sqrt()?;
            let vectors = mean.broadcast_div(&length)?.to_vec2::<f32>()?;
            for (&i, vector) in part.iter().zip(vectors) {
                made[i] = vector;
            }
        }
        Ok(made)
    }
}

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [folder, rest @ ..] = args.as_slice() else {
        return Err("a model folder is needed".into());
    };
    let encoder = Encoder::open(Path::new(folder))?;
    if let [text] = rest {
        println!("{:?}", encoder.embed(std::slice::from_ref(text))?);
        return Ok(());
    }
    let mut texts: HashMap<String, Vec<String>> = HashMap::new();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let parts: Vec<&str> = line.split('\t').collect();
        let [name, path, arguments @ ..] = parts.as_slice() else { return Err("too short".into()) };
        if !texts.contains_key(*path) {
            texts.insert((*path).to_owned(), serde_json::from_slice(&std::fs::read(path)?)?);
        }
        let texts = &texts[*path];
        let answer = match (*name, arguments) {
            ("embed", [count]) => {
                let mut seconds = Vec::new();
                for _ in 0..count.parse()? {
                    let start = Instant::now();
                    encoder.embed(texts)?;
                    seconds.push(start.elapsed().as_secs_f64());
                }
                serde_json::to_string(&seconds)?
            }
            ("vectors", [to]) => {
                let mut file = std::io::BufWriter::new(std::fs::File::create(to)?);
                for value in encoder.embed(texts)?.iter().flatten() {
                    file.write_all(&value.to_le_bytes())?;
                }
                file.flush()?;
                "null".to_owned()
            }
            _ => return Err(format!("unknown: {line}").into()),
        };
        println!("{answer}");
    }
    Ok(())
}
