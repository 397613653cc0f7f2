//! candle's own BERT.

use crate::Outcome;
use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};
use std::path::Path;
use tokenizers::Encoding;

pub struct Bert(BertModel);

impl Bert {
    pub fn open(folder: &Path) -> Outcome<Bert> {
        let config: Config = serde_json::from_slice(&std::fs::read(folder.join("config.json"))?)?;
        let weights = folder.join("model.safetensors");
        // Mapping is what candle's own example does; nobody writes to the file meanwhile.
        let weights =
            unsafe { VarBuilder::from_mmaped_safetensors(&[weights], DType::F32, &Device::Cpu)? };
        Ok(Bert(BertModel::load(weights, &config)?))
    }
}

impl crate::Model for Bert {
    fn vectors(&self, batch: &[Encoding]) -> Outcome<Vec<Vec<f32>>> {
        let tensor = |of: fn(&Encoding) -> &[u32]| {
            let rows = batch.iter().map(|e| Tensor::new(of(e), &Device::Cpu));
            Tensor::stack(&rows.collect::<Result<Vec<_>, _>>()?, 0)
        };
        let ids = tensor(|e| e.get_ids())?;
        let mask = tensor(|e| e.get_attention_mask())?;
        let hidden = self.0.forward(&ids, &ids.zeros_like()?, Some(&mask))?;
        let mask = mask.to_dtype(DType::F32)?.unsqueeze(2)?;
        let mean = hidden.broadcast_mul(&mask)?.sum(1)?.broadcast_div(&mask.sum(1)?)?;
        let length = mean.sqr()?.sum_keepdim(1)?.sqrt()?;
        Ok(mean.broadcast_div(&length)?.to_vec2::<f32>()?)
    }
}
