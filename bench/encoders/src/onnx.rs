//! rten, with the same ONNX files that ONNX Runtime gets.

use crate::Outcome;
use rten::{Model, ModelOptions, NodeId};
use rten_tensor::NdTensor;
use rten_tensor::prelude::*;
use std::path::Path;
use tokenizers::Encoding;

pub struct Rten {
    model: Model,
    /// Ids, mask and types of the tokens.
    inputs: [NodeId; 3],
    output: NodeId,
}

impl Rten {
    pub fn open(path: &Path) -> Outcome<Rten> {
        // Weights packed beforehand are the fast way.
        let model = ModelOptions::with_all_ops().prepack_weights(true).load_file(path)?;
        let [ids, mask, types] =
            ["input_ids", "attention_mask", "token_type_ids"].map(|name| model.node_id(name));
        let (inputs, output) = ([ids?, mask?, types?], model.node_id("last_hidden_state")?);
        Ok(Rten { model, inputs, output })
    }
}

impl crate::Model for Rten {
    fn vectors(&self, batch: &[Encoding]) -> Outcome<Vec<Vec<f32>>> {
        let shape = [batch.len(), batch.first().map_or(0, Encoding::len)];
        let tensor = |of: fn(&Encoding) -> &[u32]| {
            let values = batch.iter().flat_map(of).map(|&value| value as i32);
            NdTensor::from_data(shape, values.collect::<Vec<_>>())
        };
        let values = [Encoding::get_ids, Encoding::get_attention_mask, Encoding::get_type_ids];
        let inputs = self.inputs.into_iter().zip(values.map(|of| tensor(of).into())).collect();
        let [hidden] = self.model.run_n(inputs, [self.output], None)?;
        let hidden: NdTensor<f32, 3> = hidden.try_into()?;
        let mut vectors = Vec::with_capacity(batch.len());
        for (text, encoding) in batch.iter().enumerate() {
            let mut sum = vec![0f32; hidden.size(2)];
            for (token, &counts) in encoding.get_attention_mask().iter().enumerate() {
                if counts > 0 {
                    let row = hidden.slice((text, token));
                    sum.iter_mut().zip(row.iter()).for_each(|(sum, value)| *sum += value);
                }
            }
            // The mean as a unit vector: what the sum was divided by does not matter.
            let length = sum.iter().map(|x| x * x).sum::<f32>().sqrt();
            sum.iter_mut().for_each(|x| *x /= length);
            vectors.push(sum);
        }
        Ok(vectors)
    }
}
