//! A call's arguments by position of the target's parameters, with the values that the implementation chose filled in.

use wire::value::Value;

/// Values that the implementation chose in this window, by what the test case calls them.
#[derive(Debug, Default)]
pub struct Bindings<'a> {
    known: Vec<(&'a str, u64, u64)>,
}

impl<'a> Bindings<'a> {
    /// Forgets the last window's.
    pub fn clear(&mut self) {
        self.known.clear();
    }

    /// Whether [`Bindings::learn`] can learn something where this is expected.
    #[must_use]
    pub fn teaches(expected: &Value<'_>) -> bool {
        matches!(expected, Value::Opaque { .. } | Value::Struct(_) | Value::Seq(_))
    }

    /// Learns from a set-up step what stands for each opaque value of its expected result.
    pub fn learn(&mut self, expected: &'a Value<'a>, actual: &Value<'_>) {
        match (expected, actual) {
            (Value::Opaque { sort, id }, Value::Opaque { id: raw, .. }) if self.find(sort, *id).is_none() => {
                self.known.push((sort, *id, *raw));
            }
            (Value::Struct(fields), Value::Struct(others)) => {
                for (name, value) in fields {
                    if let Some((_, other)) = others.iter().find(|(other, _)| other == name) {
                        self.learn(value, other);
                    }
                }
            }
            (Value::Seq(items), Value::Seq(others)) => {
                items.iter().zip(others).for_each(|(item, other)| self.learn(item, other));
            }
            _ => {}
        }
    }

    fn find(&self, sort: &str, id: u64) -> Option<u64> {
        self.known.iter().find(|known| known.0 == sort && known.1 == id).map(|known| known.2)
    }
}

/// A number in the arguments of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// The test case says it.
    Given(i64),
    /// The implementation chose it, in this window.
    Chosen(u64),
}

/// The arguments of one call.
pub struct Arguments<'a> {
    names: &'static [&'static str],
    /// Per parameter of the target: where its argument stands in `values`.
    positions: &'a [Option<usize>],
    values: &'a [Value<'a>],
    bindings: &'a Bindings<'a>,
}

impl<'a> Arguments<'a> {
    /// Arguments `values`, of which `positions[i]` belongs to the parameter `names[i]`.
    #[must_use]
    pub fn new(
        names: &'static [&'static str],
        positions: &'a [Option<usize>],
        values: &'a [Value<'a>],
        bindings: &'a Bindings<'a>,
    ) -> Self {
        Self { names, positions, values, bindings }
    }

    /// The argument as the test case has it; [`Value::Null`] if it is missing.
    #[must_use]
    pub fn value(&self, parameter: usize) -> &'a Value<'a> {
        self.positions[parameter].map_or(&Value::Null, |position| &self.values[position])
    }

    fn wrong<T>(&self, parameter: usize, expected: &str) -> Result<T, String> {
        Err(format!("argument {}: expected {expected}, got {}", self.names[parameter], self.value(parameter)))
    }

    /// A text.
    ///
    /// # Errors
    /// The argument is missing or something else.
    pub fn text(&self, parameter: usize) -> Result<&'a str, String> {
        match self.value(parameter) {
            Value::Text(text) => Ok(text),
            _ => self.wrong(parameter, "a text"),
        }
    }

    /// A truth value.
    ///
    /// # Errors
    /// The argument is missing or something else.
    pub fn flag(&self, parameter: usize) -> Result<bool, String> {
        match self.value(parameter) {
            Value::Bool(flag) => Ok(*flag),
            _ => self.wrong(parameter, "true or false"),
        }
    }

    /// A number: as given, or what the implementation chose for an opaque value.
    ///
    /// # Errors
    /// The argument is missing or something else, or no set-up step returned the opaque value.
    pub fn number(&self, parameter: usize) -> Result<i64, String> {
        self.given_or_chosen(parameter).map(|number| match number {
            Number::Given(number) => number,
            Number::Chosen(raw) => raw.cast_signed(),
        })
    }

    /// As [`Arguments::number`], where the two are counted in different units.
    ///
    /// # Errors
    /// As [`Arguments::number`].
    pub fn given_or_chosen(&self, parameter: usize) -> Result<Number, String> {
        match self.value(parameter) {
            Value::Int(number) => Ok(Number::Given(*number)),
            Value::Opaque { sort, id } => match self.bindings.find(sort, *id) {
                Some(raw) => Ok(Number::Chosen(raw)),
                None => self.wrong(parameter, "a value that the set-up returned"),
            },
            _ => self.wrong(parameter, "a number"),
        }
    }
}
