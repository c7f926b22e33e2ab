//! Whether a fresh state is empty where the author of an adapter promises that it is: what an observation of one gave
//! at first, every later one has to give.

use std::collections::BTreeMap;

use wire::value::Value;

/// This many windows begin with one that looks at its fresh state.
const INTERVAL_WINDOWS: u64 = 64;

/// What observations of fresh states gave.
#[derive(Debug, Default)]
pub(crate) struct Emptiness {
    windows: u64,
    /// The first answer to each call, by the calls up to it, all as people read them: a call may change what comes
    /// after it.
    told: BTreeMap<String, String>,
}

impl Emptiness {
    /// A window with an observation begins. Whether its fresh state is to be looked at; the first one is.
    pub(crate) fn is_due(&mut self) -> bool {
        self.windows += 1;
        self.windows % INTERVAL_WINDOWS == 1
    }

    /// Compares what a call after those of `before` answers in a fresh state with what it answered at first. What the
    /// implementation chose is nothing to compare.
    ///
    /// # Errors
    /// The answers differ.
    pub(crate) fn compare(&mut self, before: &str, call: &str, answer: &Value<'_>) -> Result<(), String> {
        if is_chosen(answer) {
            return Ok(());
        }
        let answer = answer.to_string();
        let calls = format!("{before}{call}");
        match self.told.get(&calls) {
            Some(first) if *first != answer => Err(format!(
                "{call} of an object that should be empty gave {answer}, of an earlier one {first}; does the library keep \
                 state between tests? `make` and `reset` have to give an empty object"
            )),
            Some(_) => Ok(()),
            None => {
                self.told.insert(calls, answer);
                Ok(())
            }
        }
    }
}

/// Whether an implementation chose a value or a part of it.
fn is_chosen(value: &Value<'_>) -> bool {
    match value {
        Value::Opaque { .. } | Value::Time(_) => true,
        Value::Struct(fields) => fields.iter().any(|(_, value)| is_chosen(value)),
        Value::Seq(items) => items.iter().any(is_chosen),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_64th_window_is_due_and_the_first() {
        let mut emptiness = Emptiness::default();
        let due: Vec<u64> = (0..200).filter(|_| emptiness.is_due()).collect();
        assert_eq!(due, [0, 64, 128, 192]);
    }

    #[test]
    fn an_answer_that_differs_is_state_that_stayed() {
        let mut emptiness = Emptiness::default();
        for (before, call, answer, expected) in [
            ("", "len()", Value::Int(0), true),
            ("", "len()", Value::Int(0), true),
            ("count(a)", "len()", Value::Int(1), true),
            ("", "scan(0, 9)", Value::Seq(Vec::new()), true),
            ("", "len()", Value::Int(3), false),
            ("", "scan(0, 9)", Value::Seq(vec![Value::Int(3)]), false),
            ("", "scan(0, 9)", Value::Seq(vec![Value::Opaque { sort: "Block".into(), id: 3 }]), true),
        ] {
            let told = emptiness.compare(before, call, &answer);
            assert_eq!(told.is_ok(), expected, "{call} {answer}");
            assert!(told.is_ok() || told.unwrap_err().contains("keep state between tests"), "{call}");
        }
    }
}
