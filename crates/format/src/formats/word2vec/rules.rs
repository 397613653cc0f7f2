//! The numbered rules.

use crate::rules;

rules! {
    HEADER "W2V-01" Error "the first line is not the number of rows and of values in a row";
    EMPTY "W2V-02" Error "there are no rows or no values";
    CUT_SHORT "W2V-03" Error "the file ends too early";
    TRAILING "W2V-04" Error "bytes follow the last row";
    TEXT "W2V-05" Error "a word is not UTF-8";
    REPEATED "W2V-06" Warning "words appear twice";
    NOT_FINITE "W2V-07" Warning "a value is not a finite number";
}
