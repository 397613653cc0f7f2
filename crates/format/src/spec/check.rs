//! Holding a model against its description.

use super::architecture::with_layers;
use super::{Architecture, Fact, ModelSpec, Positions, SaidBy, TensorSizes, tokenizer};
use crate::Error;
use crate::model::{Container, SPECIAL_TOKENS};
use crate::rules;
use crate::wire::{Finding, Findings, Rule, Span, What};

rules! {
    UNREADABLE "MODEL-01" Warning "a file that describes the model can't be understood";
    SENSELESS "MODEL-02" Error "a setting of the model makes no sense";
    MISSING "MODEL-03" Error "a tensor that the model needs is missing";
    SHAPE "MODEL-04" Error "a tensor does not have the shape that the model needs";
    NOT_REAL "MODEL-05" Error "a tensor of weights holds whole numbers without a scale";
    DISAGREES "MODEL-06" Error "what is said of the model and its content disagree";
    SPECIAL "MODEL-07" Error "a special token is another token";
    TWICE "MODEL-08" Error "a token is in the vocabulary twice";
    OTHER_MODEL "MODEL-09" Error "the model is not the one that its name says";
}

/// The rules about models, which every format has that holds them.
pub fn model_rules() -> &'static [Rule] {
    RULES
}

/// Models whose sizes are published with their name.
const PUBLISHED: [(&str, TensorSizes); 1] = [(
    "all-MiniLM-L6-v2",
    TensorSizes {
        vocabulary: Some(30_522),
        rows: None,
        hidden: Some(384),
        positions: Some(512),
        token_types: Some(2),
        distances: None,
        heads: None,
        layers: Some(6),
        intermediate: Some(1536),
    },
)];

/// Checks the model in a container against its description, if it holds one. Formats may have a
/// number of their own for the rule that what is said and the content agree.
///
/// # Errors
/// If files in the container can't be read.
pub(crate) fn check(
    container: &Container,
    disagrees: Rule,
    in_folder: bool,
    findings: &mut Findings,
) -> Result<(), Error> {
    let spec = ModelSpec::of(container)?;
    let check = Check { container, spec: &spec, disagrees, in_folder };
    if spec.architecture.is_some() {
        check.settings(findings);
    }
    // Whatever it is of: tokens with a purpose are those of a model.
    let has_special = container.vocabulary.as_ref().is_some_and(|v| !v.special.is_empty());
    if spec.architecture.is_some() || has_special {
        check.vocabulary(findings);
    }
    // A table of tokens is enough to hold numbers against; only what has layers too is a model. One
    // that is said to be of another architecture is not held against this one's tensors.
    let table = with_layers().find(|a| a.prefix_in(container).is_some());
    let table = table.filter(|_| spec.architecture.is_none());
    if let Some(known) = spec.known_architecture().or(table) {
        check.sizes(known, findings);
        if (known.is_in(container) || known.is_static()) && check.is_said_to_be_whole() {
            check.name(known, findings);
            check.tensors(known, findings);
        }
    }
    Ok(())
}

struct Check<'a> {
    container: &'a Container,
    spec: &'a ModelSpec,
    disagrees: Rule,
    /// The files that describe the model are files of a folder, rather than parts of one file.
    in_folder: bool,
}

impl Check<'_> {
    fn settings(&self, findings: &mut Findings) {
        for wrong in &self.spec.misstatements {
            // The format may have said it already, with a rule of its own.
            if findings.list().iter().any(|f| f.field.contains(&wrong.field)) {
                continue;
            }
            let finding = SENSELESS.at(self.span_of(&wrong.field)).field(&wrong.field);
            let finding = self.in_file_of(finding, &wrong.field);
            findings.push(finding.expected(&wrong.expected).found(&wrong.found));
        }
        for wrong in &self.spec.unreadable {
            if !findings.list().iter().any(|f| f.field.contains(&wrong.field)) {
                let finding = UNREADABLE.at(0..0).field(&wrong.field);
                let finding = self.in_file_of(finding, &wrong.field);
                findings.push(finding.expected(&wrong.expected).found(&wrong.found));
            }
        }
        if let (Some(heads), Some(hidden)) = (&self.spec.heads, &self.spec.hidden)
            && (heads.value == 0 || !hidden.value.is_multiple_of(heads.value))
            && self.spec.known_architecture().is_some()
        {
            let finding = self.about(SENSELESS, &heads.said_by);
            let expected = format!("a number of heads that divides {}", hidden.value);
            findings.push(finding.expected(expected).found(heads.value));
        } else if let (Some(heads), Some(hidden)) = (&self.spec.heads, &self.spec.hidden)
            && self.spec.known_architecture().is_some_and(|a| a.positions == Positions::Rotary)
            && !(hidden.value / heads.value).is_multiple_of(2)
        {
            let finding = self.about(SENSELESS, &heads.said_by);
            let expected = format!("heads of an even number of the {} values", hidden.value);
            findings.push(finding.expected(expected).found(heads.value));
        }
    }

    fn sizes(&self, known: &'static Architecture, findings: &mut Findings) {
        let shown = known.sizes(self.container);
        let spec = self.spec;
        for (said, shown) in [
            (&spec.vocabulary, shown.vocabulary),
            (&spec.layers, shown.layers),
            (&spec.hidden, shown.hidden),
            (&spec.intermediate, shown.intermediate),
            (&spec.positions, shown.positions),
            (&spec.heads, shown.heads),
        ] {
            if let (Some(Fact { value, said_by }), Some(shown)) = (said, shown)
                && *value != shown
            {
                let finding = self.about(self.disagrees, said_by);
                findings.push(finding.expected(format!("{shown}, from the tensors")).found(value));
            }
        }
        let tokens = self.container.vocabulary.as_ref().map(|v| v.len() as u64);
        if let (Some(tokens), Some(rows)) = (tokens, shown.vocabulary)
            && tokens != rows
            && !(tokens < rows && is_padded(rows, tokens))
        {
            let finding = self.about_vocabulary(self.disagrees).field("vocabulary");
            findings.push(finding.expected(format!("{rows} tokens, a row each")).found(tokens));
        }
    }

    /// Some tensors of a model by themselves are no model that lacks the others, and models with other
    /// positions have other tensors.
    fn is_said_to_be_whole(&self) -> bool {
        let spec = self.spec;
        let is_said = spec.architecture.as_ref().is_some_and(Fact::is_stated)
            || spec.layers.as_ref().is_some_and(Fact::is_stated);
        let known = spec.known_architecture();
        is_said && known.is_some_and(|known| spec.position_scheme.value == known.positions)
    }

    /// Models with a published name have the published sizes.
    fn name(&self, known: &'static Architecture, findings: &mut Findings) {
        let shown = known.sizes(self.container);
        // What config.json calls a model may be the one that it was cut down from.
        let own = self.spec.name.as_deref().filter(|_| self.container.text("model_name").is_some());
        let is_named = |(name, _): &&(&str, TensorSizes)| {
            own.is_some_and(|own| own.rsplit('/').next() == Some(name))
        };
        if let Some((name, published)) = PUBLISHED.iter().find(is_named)
            && *published != shown
        {
            let finding = OTHER_MODEL.at(0..0).field(format!("model {name}"));
            findings.push(finding.expected(sizes_text(published)).found(sizes_text(&shown)));
        }
    }

    fn tensors(&self, known: &'static Architecture, findings: &mut Findings) {
        for (tensor, found) in known.tensors_in(self.container) {
            let field = || format!("tensor {:?}", tensor.name);
            let Some(found) = found else {
                if tensor.required {
                    findings.push(MISSING.at(0..0).field(field()));
                }
                continue;
            };
            let span = found.view().map_or(0..0, |view| view.span());
            let file = found.view().map_or("", |view| self.container.file_of(view));
            if found.shape != tensor.shape {
                let finding = SHAPE.at(span.clone()).in_file(file).field(field());
                let (expected, shape) = (&tensor.shape, &found.shape);
                findings
                    .push(finding.expected(format!("{expected:?}")).found(format!("{shape:?}")));
            }
            // Rows of whole numbers have weights of their own, or differ in direction alone.
            if !found.encoding.is_real() && !known.is_static() {
                let finding = NOT_REAL.at(span).in_file(file).field(field());
                findings.push(finding.expected("real numbers").found(found.encoding.name()));
            }
        }
    }

    fn vocabulary(&self, findings: &mut Findings) {
        let Some(vocabulary) = &self.container.vocabulary else { return };
        for (name, id) in &vocabulary.special {
            let usual = SPECIAL_TOKENS.iter().find(|(n, _)| n == name).map(|(_, text)| *text);
            let Some(place) = usual.and_then(|text| vocabulary.find(text)) else { continue };
            if place as u64 != u64::from(*id) {
                let token = vocabulary.token(*id as usize).unwrap_or_default().into_owned();
                let finding = self.about_vocabulary(SPECIAL).field(format!("special token {name}"));
                let expected = format!("{place}, which is {:?}", usual.unwrap_or_default());
                findings
                    .push(finding.expected(expected).found(format!("{id}, which is {token:?}")));
            }
        }
        let around = self.spec.tokenizer.as_ref().map_or(&[][..], |facts| &facts.around);
        // Models of other kinds may have one that they never use; static ones put nothing around a text.
        let used = self.spec.known_architecture().is_some_and(|known| !known.is_static());
        for (text, id) in around.iter().filter(|_| used) {
            let Some(place) = vocabulary.find(text).filter(|p| *p as u64 != u64::from(*id)) else {
                continue;
            };
            let token = vocabulary.token(*id as usize).unwrap_or_default().into_owned();
            let field = format!("{} post_processor {text:?}", tokenizer::TOKENIZER);
            let finding = self.in_file_of(SPECIAL.at(0..0), &field).field(&field);
            findings.push(finding.expected(place).found(format!("{id}, which is {token:?}")));
        }
        if let Some((again, first)) = vocabulary.duplicate() {
            let token = vocabulary.token(again).unwrap_or_default().into_owned();
            let finding = self.about_vocabulary(TWICE).field(format!("token {token:?}"));
            findings.push(finding.found(format!("number {first}, and again number {again}")));
        }
    }

    fn about(&self, rule: Rule, said_by: &SaidBy) -> Finding {
        let field = match said_by {
            SaidBy::File(place) => match place.split_once(' ') {
                Some((file, key)) => format!("{file} {key:?}"),
                None => place.clone(),
            },
            SaidBy::Metadata(key) => format!("metadata {key:?}"),
            SaidBy::Content => "the tensors".to_owned(),
            SaidBy::Family(family) => format!("what is known of {family}"),
            SaidBy::Assumed => "what is usual".to_owned(),
        };
        let key = match said_by {
            SaidBy::Metadata(key) => key.as_str(),
            _ => "",
        };
        let finding = rule.at(self.span_of(key)).field(field);
        match said_by {
            SaidBy::File(place) => self.in_file_of(finding, place),
            _ => finding,
        }
    }

    /// With the file that a place such as `config.json hidden_size` is in.
    fn in_file_of(&self, finding: Finding, place: &str) -> Finding {
        let name = place.split(' ').next().unwrap_or_default();
        let is_file = || self.container.attachments.iter().any(|a| a.name == name);
        if self.in_folder && is_file() { finding.in_file(name) } else { finding }
    }

    /// About the tokens, where they stand.
    fn about_vocabulary(&self, rule: Rule) -> Finding {
        let place = self.container.regions.of(What::Vocabulary).next();
        let finding = rule.at(place.unwrap_or(0..0));
        let is_listed = self.container.attachments.iter().any(|a| a.name == "vocab.txt");
        let file = if is_listed { "vocab.txt" } else { tokenizer::TOKENIZER };
        self.in_file_of(finding, file)
    }

    /// Where an entry of the metadata stands.
    fn span_of(&self, key: &str) -> Span {
        let key = key.strip_prefix("metadata ").unwrap_or(key);
        self.container.regions.entry(key).unwrap_or(0..0)
    }
}

/// Whether a table of so many rows may be one of so many tokens with rows that nothing uses: some
/// models are trained so, because processors like such numbers.
fn is_padded(rows: u64, tokens: u64) -> bool {
    rows.is_multiple_of(8) && rows - tokens < 128
}

fn sizes_text(sizes: &TensorSizes) -> String {
    let n = |size: Option<u64>| size.map_or("?".to_owned(), |n| n.to_string());
    format!(
        "{} tokens, {} positions, {} kinds of texts, {} layers of {} and {}",
        n(sizes.vocabulary),
        n(sizes.positions),
        n(sizes.token_types),
        n(sizes.layers),
        n(sizes.hidden),
        n(sizes.intermediate)
    )
}
