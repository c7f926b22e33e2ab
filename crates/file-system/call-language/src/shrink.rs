//! Fewer calls that show the same.

/// Leaves out calls as long as some difference stays.
pub fn shrunk<C: Clone>(mut calls: Vec<C>, mut differs: impl FnMut(&[C]) -> bool) -> Vec<C> {
    let mut part = calls.len().div_ceil(2);
    loop {
        let mut start = 0;
        while start < calls.len() {
            let end = (start + part).min(calls.len());
            let without = [&calls[..start], &calls[end..]].concat();
            if differs(&without) {
                calls = without;
            } else {
                start = end;
            }
        }
        if part <= 1 {
            return calls;
        }
        part = part.div_ceil(2);
    }
}
