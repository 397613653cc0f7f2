//! The numbered rules.

use crate::rules;

rules! {
    CUT_SHORT "NPY-01" Error "the file ends too early";
    VERSION "NPY-02" Error "unknown version";
    HEADER "NPY-03" Error "the header is not the Python dict it should be";
    KEY "NPY-04" Error "a header key is unknown, missing or given twice";
    DTYPE "NPY-05" Error "the array's type can't be read";
    SHAPE "NPY-06" Error "impossible shape";
    SIZE "NPY-07" Error "type and shape do not give the size of the data";
    NOT_FINITE "NPY-08" Warning "a value is not a finite number";
}
