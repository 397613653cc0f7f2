//! The numbered rules.

use crate::rules;

rules! {
    CUT_SHORT "ST-01" Error "the file ends too early";
    TOO_LONG "ST-02" Error "the header is longer than readers accept";
    JSON "ST-03" Error "the header is not the JSON it should be";
    DUPLICATE "ST-04" Error "a tensor name appears twice";
    DTYPE "ST-05" Error "unknown data type";
    SIZE "ST-06" Error "type and shape do not give the size of the data";
    OFFSETS "ST-07" Error "the data ranges have gaps, overlap or leave the file";
    NOT_FINITE "ST-08" Warning "a value is not a finite number";
    HUB "ST-09" Warning "the \"weighbridge\" metadata entry does not fit the file";
    INDEX "ST-10" Error "the index of shards is malformed";
    SHARD "ST-11" Error "a shard does not hold what the index says";
    PADDING "ST-12" Warning "the data does not start at a multiple of 8";
    MEMBER "ST-13" Warning "the header has something that the format does not know";
}
