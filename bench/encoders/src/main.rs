//! candle and rten as peers: a process that answers requests as `encode_peers.py` does.
//!
//! `weighbridge-bench-encoders candle MODEL_FOLDER` or `rten ONNX_FILE` answers requests from standard
//! input; with a text behind it, it embeds that one and ends. Threads are those that
//! `RAYON_NUM_THREADS` and `RTEN_NUM_THREADS` say.

mod candle;
mod onnx;

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Instant;
use tokenizers::{Encoding, PaddingParams, Tokenizer, TruncationParams};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// As the other peers: what fits a batch is padded to its longest text.
const BATCH: usize = 32;
const TOKENS: usize = 256;

/// A model that makes unit vectors of a batch of texts.
trait Model {
    fn vectors(&self, batch: &[Encoding]) -> Outcome<Vec<Vec<f32>>>;
}

struct Encoder {
    model: Box<dyn Model>,
    tokenizer: Tokenizer,
}

impl Encoder {
    fn open(who: &str, path: &Path) -> Outcome<Encoder> {
        let (model, folder): (Box<dyn Model>, _) = match who {
            "candle" => (Box::new(candle::Bert::open(path)?), path),
            "rten" => (Box::new(onnx::Rten::open(path)?), path.parent().ok_or("a file")?),
            _ => return Err(format!("unknown: {who}").into()),
        };
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
            let vectors = self.model.vectors(&self.tokenizer.encode_batch(batch, true)?)?;
            for (&i, vector) in part.iter().zip(vectors) {
                made[i] = vector;
            }
        }
        Ok(made)
    }
}

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [who, path, rest @ ..] = args.as_slice() else {
        return Err("a peer and its model are needed".into());
    };
    let encoder = Encoder::open(who, Path::new(path))?;
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
