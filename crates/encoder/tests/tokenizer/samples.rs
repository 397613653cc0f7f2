//! A vocabulary in which hardly any character is unknown, so that nothing hides behind `[UNK]`, and
//! texts of every kind.

use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use unicode_normalization::char::decompose_canonical;
use weighbridge_encoder::tokenizer::Casing;

/// Words that texts are made of, and some of them of pieces.
#[rustfmt::skip]
const WORDS: [&str; 16] = [
    "the", "day", "days", "yesterday", "un", "##afford", "##able", "a", "Paris", "naïve", "zürich",
    "##'s", "straße", "##ing", "embedd", "東京",
];

/// Settings that differ in one thing and another.
pub(crate) fn casings() -> Vec<Casing> {
    let all = Casing::UNCASED;
    vec![
        all,
        Casing::CASED,
        Casing { strip_accents: false, ..all },
        Casing { lower_case: false, ..all },
        Casing { split_chinese: false, ..all },
        Casing { clean: false, ..all },
        Casing { clean: false, split_chinese: false, ..Casing::CASED },
    ]
}

/// Special tokens, some words, and as a word and inside one each: the characters of most scripts,
/// and those that are made of others or have another case, with what becomes of them.
pub(crate) fn vocabulary() -> Vec<String> {
    let mut characters = BTreeSet::new();
    for c in (0x21..0x30000).filter_map(char::from_u32) {
        let mut parts = Vec::new();
        decompose_canonical(c, |part| parts.push(part));
        let lower = parts.iter().flat_map(|part| part.to_lowercase()).collect::<Vec<_>>();
        let hangul = matches!(c, '\u{ac00}'..='\u{d7a3}');
        if c < '\u{3100}' || (lower != [c] && !hangul) || hangul && (c as u32).is_multiple_of(64) {
            characters.extend(parts);
            characters.extend(lower);
            characters.extend(c.to_lowercase());
            characters.insert(c);
        }
    }
    for marks in [0x8d4..=0x8e1, 0x1d165..=0x1d172, 0x1e000..=0x1e02a, 0x1e944..=0x1e94a] {
        characters.extend(marks.filter_map(char::from_u32));
    }
    let mut tokens: Vec<String> =
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].map(str::to_owned).into();
    tokens.extend(characters.iter().map(|c| c.to_string()));
    tokens.extend(characters.iter().map(|c| format!("##{c}")));
    let known: BTreeSet<String> = tokens.iter().cloned().collect();
    let words: BTreeSet<_> = WORDS.iter().map(|w| (*w).to_owned()).collect();
    tokens.extend(words.difference(&known).cloned());
    tokens
}

/// The special tokens and, if wanted, one of each kind of others.
pub(crate) fn added_tokens(further: bool) -> Json {
    let token = |content: &str, single_word: bool, strips: (bool, bool), normalized: bool| {
        json!({
            "id": 0, "content": content, "single_word": single_word, "lstrip": strips.0,
            "rstrip": strips.1, "normalized": normalized, "special": !normalized,
        })
    };
    let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
    let mut all: Vec<Json> =
        special.iter().map(|text| token(text, false, (false, false), false)).collect();
    if further {
        all.extend([
            token("<mask>", false, (true, false), false),
            token("<s>", false, (true, true), true),
            token("[MASK][SEP]", false, (false, false), false),
            token("day", true, (false, false), false),
            token("Été", true, (false, true), true),
            token("été d", false, (false, false), true),
            token(" b", false, (false, false), true),
            token("東", false, (true, true), true),
            token("\n", false, (true, true), false),
        ]);
    }
    all.into()
}

/// A tokenizer.json that also asks for what must be ignored.
pub(crate) fn file(tokens: &[String], added: &Json, casing: Casing) -> String {
    let vocab: serde_json::Map<String, Json> =
        tokens.iter().enumerate().map(|(id, token)| (token.clone(), id.into())).collect();
    let special = |text: &str, id: u32| json!({"id": text, "ids": [id], "tokens": [text]});
    let strip = (casing.strip_accents != casing.lower_case).then_some(casing.strip_accents);
    json!({
        "version": "1.0",
        "truncation": {"max_length": 8, "strategy": "LongestFirst", "stride": 0},
        "padding": {
            "strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": null,
            "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]",
        },
        "added_tokens": added,
        "normalizer": {
            "type": "BertNormalizer", "clean_text": casing.clean,
            "handle_chinese_chars": casing.split_chinese, "strip_accents": strip,
            "lowercase": casing.lower_case,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
            ],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"[CLS]": special("[CLS]", 2), "[SEP]": special("[SEP]", 3)},
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocab,
        },
    })
    .to_string()
}

/// SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0xd134_2543_de82_ef95))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

/// First and last code of blocks: scripts, marks, symbols, private use, and places without
/// characters.
#[rustfmt::skip]
const BLOCKS: [(u32, u32); 60] = [
    (0x20, 0x7e), (0x20, 0x7e), (0x00, 0x1f), (0x7f, 0xff), (0x100, 0x24f), (0x250, 0x2ff),
    (0x300, 0x36f), (0x370, 0x3ff), (0x400, 0x52f), (0x530, 0x58f), (0x590, 0x5ff), (0x600, 0x6ff),
    (0x700, 0x7bf), (0x840, 0x8ff), (0x900, 0x97f), (0x980, 0x9ff), (0xa00, 0xb7f), (0xb80, 0xcff),
    (0xd00, 0xdff), (0xe00, 0xeff), (0xf00, 0xfff), (0x1000, 0x109f), (0x10a0, 0x11ff),
    (0x1200, 0x139f), (0x13a0, 0x167f), (0x1680, 0x18af), (0x1900, 0x1aff), (0x1b00, 0x1cff),
    (0x1d00, 0x1dff), (0x1e00, 0x1fff), (0x2000, 0x206f), (0x2070, 0x20cf), (0x20d0, 0x20ff),
    (0x2100, 0x23ff), (0x2460, 0x27bf), (0x2c00, 0x2e7f), (0x2e80, 0x303f), (0x3040, 0x30ff),
    (0x3100, 0x33ff), (0x3400, 0x4dbf), (0x4e00, 0x9fff), (0xa000, 0xa4cf), (0xa640, 0xabff),
    (0xac00, 0xd7ff), (0xe000, 0xf8ff), (0xf900, 0xfaff), (0xfb00, 0xfdff), (0xfe00, 0xfe6f),
    (0xfe70, 0xffff), (0x10000, 0x10fff), (0x11000, 0x11fff), (0x16a00, 0x16fff),
    (0x1d000, 0x1d7ff), (0x1e000, 0x1e95f), (0x1f000, 0x1faff), (0x20000, 0x323af),
    (0x2a700, 0x2fa1f), (0xe0000, 0xe01ef), (0xf0000, 0x10ffff), (0, 0x10ffff),
];

#[rustfmt::skip]
const SPACES: [&str; 12] = [
    " ", " ", "  ", "\t", "\n", "\r\n", "\u{a0}", "\u{2003}", "\u{3000}", "\u{2028}", "\u{b}",
    "\u{85}",
];

#[rustfmt::skip]
const PHRASES: [&str; 26] = [
    "[SEP]", "[MASK]", "[CLS]", "[UNK]", "[PAD]", "[mask]", "[MASK", "[[SEP]]", "[MASK][SEP]",
    "<mask>", "<s>", " <s> ", "day", "Day", "ÉTÉ", "été d", "e\u{301}te\u{301}", "東", "👩‍👩‍👧‍👦", "🏳️‍🌈",
    "ﬁ", "İstanbul", "ΑΣ", "a\u{1d16d}\u{1d165}", "don't", "e\u{302e}\u{301}\u{302f}",
];

/// A text of up to some dozen parts of all kinds.
pub(crate) fn text(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..random.below(24) {
        match random.below(12) {
            0..3 => text.push_str(WORDS[random.below(WORDS.len())].trim_start_matches('#')),
            3 => text.push_str(random.of(&PHRASES)),
            4..6 => {
                // A word of one script, or of several.
                let (first, last) = random.of(&BLOCKS);
                for _ in 0..=random.below(8) {
                    let code = first + random.below((last - first + 1) as usize) as u32;
                    text.extend(char::from_u32(code));
                }
            }
            6 => {
                let (first, last) = random.of(&BLOCKS);
                let code = first + random.below((last - first + 1) as usize) as u32;
                text.extend(char::from_u32(code));
            }
            7 => {
                let marks = ['\u{301}', '\u{323}', '\u{302e}', '\u{1d165}', '\u{8d4}', '\u{34f}'];
                (0..random.below(5)).for_each(|_| text.push(random.of(&marks)));
            }
            8 if random.below(8) == 0 => {
                // As long as a word may be, and longer.
                let c = random.of(&['a', 'é', '가', '\u{200d}', '𝔸']);
                (0..97 + random.below(8)).for_each(|_| text.push(c));
            }
            _ => text.push_str(random.of(&SPACES)),
        }
    }
    text
}
