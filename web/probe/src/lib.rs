//! Says of a file everything that there is to say, from memory alone: what is in it, the rules that
//! it breaks, what it becomes in other formats, and the vectors of a text if it is a model.

mod exports;

use serde_json::{Value as Json, json};
use weighbridge::quantize::{Method, QuantizeSettings};
use weighbridge::{
    Container, Detail, Encoder, Error, Formats, Input, Options, Progress, quantize, summary, verify,
};

/// A file with those beside it, or a folder.
#[derive(Debug, Default)]
pub struct Bundle {
    /// Its name.
    pub name: String,
    /// It is a folder: all files are beside.
    pub is_folder: bool,
    /// Its bytes.
    pub main: Vec<u8>,
    /// Other files, by relative name.
    pub beside: Vec<(String, Vec<u8>)>,
}

impl Bundle {
    /// One block of bytes: a byte that says whether it is a folder, then names and contents, each
    /// behind its length of 32 bits; the main file first.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![u8::from(self.is_folder)];
        let main = [(&self.name, &self.main)];
        for (name, bytes) in main.into_iter().chain(self.beside.iter().map(|(n, b)| (n, b))) {
            for part in [name.as_bytes(), bytes] {
                out.extend(u32::try_from(part.len()).expect("a small file").to_le_bytes());
                out.extend_from_slice(part);
            }
        }
        out
    }

    /// The other way; none if the bytes are cut short.
    pub fn from_bytes(bytes: &[u8]) -> Option<Bundle> {
        let (flag, mut rest) = bytes.split_first()?;
        let mut part = || {
            let (length, behind) = rest.split_first_chunk::<4>()?;
            let (taken, behind) =
                behind.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
            rest = behind;
            Some(taken.to_vec())
        };
        let mut files = Vec::new();
        while let Some(name) = part() {
            files.push((String::from_utf8(name).ok()?, part()?));
        }
        let (name, main) = (!files.is_empty()).then(|| files.remove(0))?;
        Some(Bundle { name, is_folder: *flag == 1, main, beside: files })
    }
}

/// All that there is to say of a bundle, as JSON.
pub fn tell(bundle: Bundle) -> Json {
    let mut input = Input::in_memory(&bundle.name, bundle.main, bundle.beside);
    input.is_folder = bundle.is_folder;
    told(&input).unwrap_or_else(|error| json!({"error": error.report()}))
}

fn told(input: &Input) -> Result<Json, Error> {
    let formats = Formats::builtin();
    let container = formats.open(input, &Options::default())?;
    let mut detail = Detail::new();
    (detail.stats, detail.bytes, detail.vocabulary) = (true, true, true);
    let verdict = verify(formats, input, &Options::default(), false)?;
    let mut told = json!({
        "summary": summary(&container, &detail)?,
        "findings": verdict.findings,
        "formats": serde_json::Map::new(),
    });
    for format in formats.iter().filter(|f| f.writes()) {
        told["formats"][format.info().id] = written(&container, format.info().id);
    }
    told["quantized"] = quantized(&container);
    told["vector"] = vector(&container);
    Ok(told)
}

/// The checksum of what a container becomes in a format, or why it can't.
fn written(container: &Container, id: &str) -> Json {
    let plan = weighbridge::plan(container, id).map(|plan| plan.accept_losses(true));
    match plan.and_then(|plan| plan.to_files()) {
        Ok(files) => {
            let sum = |(_, bytes): &(Option<String>, Vec<u8>)| json!([bytes.len(), crc(bytes)]);
            files.iter().map(sum).collect()
        }
        Err(error) => json!(error.kind().name()),
    }
}

fn quantized(container: &Container) -> Json {
    let Some(method) = Method::from_name("k4") else { return Json::Null };
    let settings = QuantizeSettings::new(method);
    match quantize(container, &settings, &mut Progress::none()) {
        Ok(done) => json!(done.plan.size()),
        Err(error) => json!(error.kind().name()),
    }
}

/// The vector of a text, to four digits: the last ones depend on the processor.
fn vector(container: &Container) -> Json {
    let encoder = match Encoder::new(container, &Default::default()) {
        Ok(encoder) => encoder,
        Err(error) => return json!(error.kind().name()),
    };
    match encoder.embed(&["a truck on the road"]) {
        Ok(vectors) => vectors[0].iter().map(|v| json!(format!("{v:.4}"))).collect(),
        Err(error) => json!(error.kind().name()),
    }
}

fn crc(bytes: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(bytes);
    sum.finalize()
}
