//! Linear expressions over integer unknowns, and constraints on them.

use smallvec::SmallVec;

/// The index of an integer unknown.
pub type Variable = u32;

/// A number of more than 64 bits would be needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

type Terms = SmallVec<[(Variable, i64); 2]>;

/// `sum(coefficient * variable) + constant`. Few have more than two terms.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Linear {
    terms: Terms,
    constant: i64,
}

impl Linear {
    /// An expression that is one number.
    pub fn number(constant: i64) -> Self {
        Self { terms: Terms::new(), constant }
    }

    /// `coefficient * variable + constant`; the coefficient is not 0.
    pub fn unknown(variable: Variable, coefficient: i64, constant: i64) -> Self {
        Self { terms: Terms::from_slice(&[(variable, coefficient)]), constant }
    }

    /// The sum of terms in any order, in which a variable may occur more than once.
    pub fn sum(terms: impl IntoIterator<Item = (Variable, i64)>, constant: i64) -> Result<Self, TooLarge> {
        let mut terms: Terms = terms.into_iter().collect();
        terms.sort_unstable_by_key(|term| term.0);
        let mut sum = Self::number(constant);
        for (variable, coefficient) in terms {
            match sum.terms.last_mut() {
                Some(last) if last.0 == variable => last.1 = last.1.checked_add(coefficient).ok_or(TooLarge)?,
                _ => sum.terms.push((variable, coefficient)),
            }
        }
        sum.terms.retain(|term| term.1 != 0);
        Ok(sum)
    }

    /// The terms by ascending variable, none with coefficient 0.
    pub fn terms(&self) -> &[(Variable, i64)] {
        &self.terms
    }

    /// What is added to the terms.
    pub fn constant(&self) -> i64 {
        self.constant
    }

    /// The number that the expression is, if it is one.
    pub fn as_number(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The variable's coefficient; 0 if it does not occur.
    pub fn coefficient(&self, variable: Variable) -> i64 {
        self.terms.iter().find(|term| term.0 == variable).map_or(0, |term| term.1)
    }

    /// `self + factor * other`.
    pub fn plus(&self, other: &Self, factor: i64) -> Result<Self, TooLarge> {
        let times = |value: i64| value.checked_mul(factor).ok_or(TooLarge);
        let constant = self.constant.checked_add(times(other.constant)?).ok_or(TooLarge)?;
        if other.terms.is_empty() || factor == 0 {
            return Ok(Self { terms: self.terms.clone(), constant });
        }
        let mut terms = Terms::with_capacity(self.terms.len() + other.terms.len());
        let mut mine = self.terms.iter().copied().peekable();
        for &(variable, coefficient) in &other.terms {
            while let Some(term) = mine.next_if(|term| term.0 < variable) {
                terms.push(term);
            }
            let own = mine.next_if(|term| term.0 == variable).map_or(0, |term| term.1);
            let total = own.checked_add(times(coefficient)?).ok_or(TooLarge)?;
            if total != 0 {
                terms.push((variable, total));
            }
        }
        terms.extend(mine);
        Ok(Self { terms, constant })
    }

    /// `self + number`.
    pub fn plus_number(&self, number: i64) -> Result<Self, TooLarge> {
        let constant = self.constant.checked_add(number).ok_or(TooLarge)?;
        Ok(Self { terms: self.terms.clone(), constant })
    }

    /// `factor * self`.
    pub fn times(&self, factor: i64) -> Result<Self, TooLarge> {
        Self::default().plus(self, factor)
    }

    /// `1 - self`: at most 0 exactly where `self` is above 0.
    pub fn above_zero(&self) -> Result<Self, TooLarge> {
        Self::number(1).plus(self, -1)
    }

    /// The value where each variable has the given one.
    pub fn value(&self, of: impl Fn(Variable) -> i64) -> Result<i64, TooLarge> {
        self.terms.iter().try_fold(self.constant, |sum, &(variable, coefficient)| {
            coefficient.checked_mul(of(variable)).and_then(|term| sum.checked_add(term)).ok_or(TooLarge)
        })
    }

    /// The expression with its variables under other names.
    pub fn renamed(&self, mut name: impl FnMut(Variable) -> Variable) -> Self {
        let mut terms: Terms =
            self.terms.iter().map(|&(variable, coefficient)| (name(variable), coefficient)).collect();
        terms.sort_unstable_by_key(|term| term.0);
        Self { terms, constant: self.constant }
    }
}

/// How a constraint's expression stands to 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Relation {
    /// `!= 0`
    NotEqual,
    /// `<= 0`
    AtMost,
    /// `== 0`
    Equal,
}

/// A linear expression against 0.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Constraint {
    /// How the expression stands to 0.
    pub relation: Relation,
    /// The expression.
    pub linear: Linear,
}

impl Constraint {
    /// Whether the values satisfy it; a sum that leaves 64 bits does not.
    pub fn holds(&self, values: &[i64]) -> bool {
        self.linear.value(|variable| values[variable as usize]).is_ok_and(|value| match self.relation {
            Relation::NotEqual => value != 0,
            Relation::AtMost => value <= 0,
            Relation::Equal => value == 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn linears() -> impl Strategy<Value = Linear> {
        (proptest::collection::vec((0..4_u32, -3..4_i64), 0..6), -6..7_i64)
            .prop_map(|(terms, constant)| Linear::sum(terms, constant).expect("small"))
    }

    proptest! {
        #[test]
        fn sums_have_the_value_of_their_parts(
            left in linears(), right in linears(), factor in -3..4_i64, values in proptest::array::uniform4(-9..10_i64),
        ) {
            let at = |variable: Variable| values[variable as usize];
            let total = left.plus(&right, factor).expect("small");
            let value = |linear: &Linear| linear.value(at).expect("small");
            prop_assert_eq!(value(&total), value(&left) + factor * value(&right));
            prop_assert_eq!(value(&left.times(factor).expect("small")), factor * value(&left));
            prop_assert_eq!(value(&left.above_zero().expect("small")) <= 0, value(&left) > 0);
            prop_assert!(total.terms().iter().all(|term| term.1 != 0));
            prop_assert!(total.terms().is_sorted_by(|first, second| first.0 < second.0));
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let large = Linear::unknown(0, i64::MAX, i64::MAX);
        assert_eq!(large.plus(&large, 1), Err(TooLarge));
        assert_eq!(large.times(2), Err(TooLarge));
        assert_eq!(large.plus_number(1), Err(TooLarge));
        assert_eq!(large.value(|_| 2), Err(TooLarge));
    }
}
