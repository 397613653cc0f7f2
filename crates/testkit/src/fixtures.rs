//! A few small valid files of every format in the table, made by planning sample containers.

use crate::{Ranges, stored, words};
use std::sync::Arc;
use weighbridge_codec::block::{BlockEncoder, Layout, Recipe, codecs};
use weighbridge_codec::{DType, Scalar, element};
use weighbridge_format::model::{Array, Attachment, BlockCoded, Records, Scaled, Scaling, Value};
use weighbridge_format::plan::Plan;
use weighbridge_format::sink::to_memory;
use weighbridge_format::source::{Bytes, MemoryFolder};
use weighbridge_format::{
    Container, Encoding, Error, FormatInfo, Formats, Input, Options, Tensor, View, Vocabulary,
    samples,
};

/// A valid file with what lies beside it, or a folder.
#[derive(Clone, Debug)]
pub struct Fixture {
    pub format: &'static str,
    /// The content it was made of.
    pub content: &'static str,
    /// File name, or the folder's.
    pub name: String,
    /// The main file's bytes; empty for a folder.
    pub main: Vec<u8>,
    pub beside: Vec<(String, Vec<u8>)>,
    pub is_folder: bool,
    /// Written only when asked for: what was read is written in the usual layout.
    pub unusual: bool,
}

impl Fixture {
    pub fn input(&self) -> Input {
        let mut input = Input::in_memory(&self.name, self.main.clone(), self.beside.clone());
        input.is_folder = self.is_folder;
        input
    }

    /// The same from sources that read range by range.
    pub fn input_from(&self, ranges: impl Fn(Vec<u8>) -> Ranges) -> Input {
        let beside = self.beside.iter();
        let beside = beside.map(|(name, bytes)| (name.clone(), ranges(bytes.clone()).source()));
        let mut input = Input::from_source(&self.name, ranges(self.main.clone()).source());
        input.folder = std::sync::Arc::new(MemoryFolder::from_sources(beside.collect()));
        input.is_folder = self.is_folder;
        input
    }

    /// How many files it has; a folder has only those beside the main one.
    pub fn files(&self) -> usize {
        self.beside.len() + usize::from(!self.is_folder)
    }

    /// With another main file.
    pub fn with_main(&self, main: Vec<u8>) -> Fixture {
        Fixture { main, ..self.clone() }
    }

    /// With another file beside it.
    pub fn with_beside(&self, index: usize, bytes: Vec<u8>) -> Fixture {
        let mut changed = self.clone();
        changed.beside[index].1 = bytes;
        changed
    }

    /// What a plan of a format writes.
    pub fn from_plan(
        info: &'static FormatInfo,
        content: &'static str,
        plan: &Plan,
    ) -> Result<Fixture, Error> {
        let files = to_memory(plan)?;
        let extension = info.extensions.first().map(|e| format!(".{e}")).unwrap_or_default();
        let mut fixture = Fixture {
            format: info.id,
            content,
            name: format!("{content}{extension}"),
            main: Vec::new(),
            beside: Vec::new(),
            is_folder: plan.is_folder,
            unusual: false,
        };
        for (name, bytes) in files {
            match name {
                Some(name) => fixture.beside.push((name, bytes)),
                None => fixture.main = bytes,
            }
        }
        fixture.beside.sort();
        Ok(fixture)
    }
}

/// Fixtures of every format in the table: each sample that the format can hold, whatever it loses.
/// Formats that are only read have theirs made by hand.
pub fn fixtures() -> Vec<Fixture> {
    let mut samples: Vec<(&str, Container)> = vec![
        ("model", samples::tiny_model()),
        ("rows", samples::unit_vectors()),
        ("rich", rich_container()),
        ("scaled", scaled_container()),
        ("blocks", blocks_container()),
        ("words", samples::word_embeddings()),
    ];
    let variants = words::variants();
    samples.extend(variants.iter().cloned());
    let mut list = Vec::new();
    for format in Formats::builtin().iter().filter(|f| f.writes() && f.reads()) {
        let info = format.info();
        for (content, sample) in &samples {
            // Elsewhere they would be cut down to words, which there are already, or be carried.
            let of_words = info.holds.subwords && info.holds.rank.1 == 2;
            let is_variant = variants.iter().any(|(name, _)| name == content);
            if is_variant && !of_words {
                continue;
            }
            let mut sample = sample.clone();
            sample.format = info.id;
            let Ok(plan) = format.plan(&sample, &dated()) else { continue };
            list.push(
                Fixture::from_plan(info, content, &plan).expect("a planned sample is written"),
            );
        }
    }
    list.push(other_layout("embd", "stream", samples::tiny_model(), ("layout", "stream")));
    let draft =
        |content, sample| other_layout("finalfusion", content, sample, ("dialect", "draft"));
    list.push(draft("draft", samples::word_embeddings()));
    list.push(draft("draft buckets", words::buckets()));
    list.push(draft("draft product", words::product(false)));
    list.push(model_folder());
    list
}

/// The same time in every run, also where there is no clock.
pub fn dated() -> Options {
    Options::default().with("created-at", "2025-01-16T12:00:00Z")
}

/// A layout that a format writes only when it is asked to.
fn other_layout(
    format: &str,
    content: &'static str,
    mut sample: Container,
    (option, value): (&'static str, &str),
) -> Fixture {
    let format =
        Formats::builtin().iter().find(|f| f.info().id == format).expect("it is in the table");
    sample.format = format.info().id;
    let options = dated().with(option, value);
    let plan = format.plan(&sample, &options).expect("the sample fits");
    let made = Fixture::from_plan(format.info(), content, &plan);
    Fixture { unusual: true, ..made.expect("a planned sample is written") }
}

/// A Hugging Face directory with the tiny model.
fn model_folder() -> Fixture {
    let mut beside = samples::model_directory().expect("the sample is made");
    beside.sort();
    Fixture {
        format: "hf",
        content: "folder",
        name: "tiny".to_owned(),
        main: Vec::new(),
        beside,
        is_folder: true,
        unusual: false,
    }
}

/// Everything a container can hold: a tensor of every type, metadata of every kind, a vocabulary, an
/// attachment, records, a declaration, two names for the same bytes.
pub fn rich_container() -> Container {
    let mut tensors = Vec::new();
    for (i, &dtype) in DType::ALL.iter().enumerate() {
        // Packed floats fill whole bytes only in multiples of four; others are left ragged.
        let shape = if dtype.is_float() && dtype.is_packed() { vec![2, 4] } else { vec![3, 3] };
        let count: u64 = shape.iter().product();
        let mut bytes = vec![0; usize::try_from(dtype.byte_len(count).unwrap()).unwrap()];
        for j in 0..usize::try_from(count).unwrap() {
            let step = i64::try_from(i + j).unwrap() % 3 - 1;
            let value = match dtype {
                DType::T1 => Scalar::Int(if step < 0 { -1 } else { 1 }),
                DType::C64 => Scalar::Complex(step as f32, 0.5),
                _ => Scalar::Int(step),
            };
            element::write(dtype, &mut bytes, j, value);
        }
        let name = format!("t.{}", dtype.name());
        // One sentence of OINF's specification excludes it, so that no format writes it.
        if dtype != DType::Bitset {
            tensors.push(stored(name, Encoding::Plain(dtype), shape, View::owned(bytes)));
        }
    }
    let scalar = View::owned(1.5f32.to_le_bytes().to_vec());
    tensors.push(stored("t.scalar", Encoding::Plain(DType::F32), vec![], scalar));
    tensors.push(stored("t.empty", Encoding::Plain(DType::F32), vec![0, 4], View::owned(vec![])));
    let mut alias = tensors.iter().find(|t| t.name == "t.f32").expect("f32 is a type").clone();
    alias.name = "t.same-as-f32".to_owned();
    tensors.push(alias);
    let half = Encoding::Plain(DType::F16);
    tensors.push(Tensor::declared("t.declared", half, vec![4, 9]));
    let array = |dtype: DType, shape: Vec<u64>, data: Vec<u8>| {
        Value::Array(Array { dtype, shape, data: Bytes::owned(data) })
    };
    let metadata = vec![
        ("plain", Value::Text("clamp_up".into())),
        ("other", Value::Text("a/b: é\n".into())),
        ("flag", Value::Bool(true)),
        ("small", Value::Number(DType::I4, 0xD)),
        ("rate", Value::Number(DType::F64, 0.1f64.to_bits())),
        ("huge", Value::Number(DType::U64, u64::MAX)),
        ("bits", Value::Bits { count: 9, bytes: Bytes::owned(vec![0x8D, 1]) }),
        (
            "list",
            array(
                DType::F32,
                vec![2],
                [1.5f32, -2.5].iter().flat_map(|v| v.to_le_bytes()).collect(),
            ),
        ),
        ("none", array(DType::U8, vec![0], vec![])),
    ];
    let mut vocabulary = Vocabulary::from_tokens(["[PAD]", "[UNK]", "é", "", "東京"]);
    vocabulary.find_special();
    let records = Records::parse(Bytes::owned(br#"[{"a": 1}, {"b" :"x"}]"#.to_vec()));
    Container {
        metadata: metadata.into_iter().map(|(k, v)| (k.to_owned(), v)).collect(),
        sizevars: vec![("B".into(), 4), ("D".into(), u64::MAX)],
        tensors,
        vocabulary: Some(vocabulary),
        attachments: vec![Attachment {
            name: "1_Pooling/config.json".into(),
            data: View::owned(vec![0, 159, 146, 150]),
            described: false,
        }],
        records: records.ok(),
        ..Container::default()
    }
}

/// Integers with scales of every kind.
pub fn scaled_container() -> Container {
    let make = |name: &str, codes: DType, scaling: Scaling| {
        let bytes = usize::try_from(codes.byte_len(24).unwrap()).unwrap();
        // No code that a symmetric scheme would not have.
        let data = (0..bytes).map(|i| u8::try_from(i * 37 % 113).unwrap()).collect();
        let scaled = Encoding::Scaled(Arc::new(Scaled { codes, scaling }));
        stored(name, scaled, vec![2, 3, 4], View::owned(data))
    };
    let affine = |axis: Option<usize>, count: usize, zero: bool| Scaling::Affine {
        axis,
        scales: (0..count).map(|i| 0.013 * (i + 1) as f32).collect(),
        zero_points: zero.then(|| (0..count).map(|i| 7 * i32::try_from(i).unwrap() - 5).collect()),
    };
    Container {
        tensors: vec![
            make("q.tensor", DType::I8, affine(None, 1, false)),
            make("q.axis0", DType::U8, affine(Some(0), 2, true)),
            make("q.axis2", DType::I4, affine(Some(2), 4, false)),
            make("q.wide", DType::I16, affine(None, 1, true)),
            make(
                "q.zero-scale",
                DType::I8,
                Scaling::Affine { axis: None, scales: vec![0.0], zero_points: None },
            ),
        ],
        ..Container::default()
    }
}

/// A matrix for every block codec, with a ragged last block.
pub fn blocks_container() -> Container {
    let (rows, cols) = (3, 40);
    let tensors = codecs().iter().map(|&codec| {
        let layout = Layout::new(codec, rows, cols).expect("a small matrix");
        let recipe =
            Recipe { encoder: BlockEncoder::Reference, clip: (-1.0, 1.0), importance: None };
        let len = |n: u64| usize::try_from(n).unwrap();
        let mut front = vec![0; len(layout.codes.start)];
        let mut codes = vec![0; len(layout.codes_size())];
        for (i, codes) in (0..).zip(codes.chunks_mut(len(layout.codes.row_bytes))) {
            let row: Vec<_> = (0..cols).map(|j| ((i * 37 + j * 11) as f32).sin()).collect();
            let front = layout.front_of_mut(&mut front, i);
            codec.encode(&recipe, &row, front, codes).expect("small values");
        }
        let encoding = Encoding::Blocks(Arc::new(BlockCoded::new(codec, View::owned(front))));
        stored(format!("b.{}", codec.name()), encoding, vec![rows, cols], View::owned(codes))
    });
    Container { tensors: tensors.collect(), ..Container::default() }
}
