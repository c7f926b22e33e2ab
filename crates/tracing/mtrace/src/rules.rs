//! Why an access does not count as a conflict: a closed list of rules, each with a name, each counted and switchable.
//!
//! The rules are applied in the order of [`Rule::ALL`]. A line that conflicts when every access counts, but no longer
//! does once the accesses of the first *k* rules are left out (and did with *k - 1*), is counted for rule *k*. So each
//! ignored line is counted once, and the sum of the counts is the number of lines that the rules removed.

/// One reason to leave an access out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Rule {
    /// Memory of the program that runs the test: its stack, its data, the buffers it hands to calls.
    Runner = 0,
    /// Timer and device interrupts, including what is scheduled on the way out of them.
    Interrupt = 1,
    /// Everything under the softirq dispatcher, and what a tick leaves to the task that it interrupted.
    Softirq = 2,
    /// Tasks that are not the test's: kernel threads, the idle task, other processes.
    OtherTask = 3,
    /// Stores that clear memory while it is being allocated.
    AllocationClear = 4,
    /// Device registers: they lie in no cache.
    DeviceMemory = 5,
}

/// Number of rules.
pub const RULE_COUNT: usize = Rule::ALL.len();

impl Rule {
    /// All rules, in the order in which they are applied.
    pub const ALL: [Rule; 6] =
        [Rule::Runner, Rule::Interrupt, Rule::Softirq, Rule::OtherTask, Rule::AllocationClear, Rule::DeviceMemory];

    /// The rule's name in arguments, traces and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Rule::Runner => "runner",
            Rule::Interrupt => "interrupt",
            Rule::Softirq => "softirq",
            Rule::OtherTask => "other_task",
            Rule::AllocationClear => "allocation_clear",
            Rule::DeviceMemory => "device_memory",
        }
    }

    /// The rule of that name.
    pub fn from_name(name: &str) -> Option<Rule> {
        Self::ALL.into_iter().find(|rule| rule.name() == name)
    }
}

/// A set of rules: those that are switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleSet(u8);

impl RuleSet {
    /// Every rule.
    pub const fn all() -> Self {
        Self((1 << RULE_COUNT) - 1)
    }

    /// This set without one rule.
    #[must_use]
    pub const fn without(self, rule: Rule) -> Self {
        Self(self.0 & !(1 << rule as u8))
    }

    /// This set with one more rule.
    #[must_use]
    pub const fn with(self, rule: Rule) -> Self {
        Self(self.0 | 1 << rule as u8)
    }

    /// Whether the rule is in the set.
    pub const fn contains(self, rule: Rule) -> bool {
        self.0 & (1 << rule as u8) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_rules() {
        for rule in Rule::ALL {
            assert_eq!(Rule::from_name(rule.name()), Some(rule));
        }
        assert_eq!(Rule::from_name("Runner"), None);
    }

    #[test]
    fn sets_change_one_rule_at_a_time() {
        for rule in Rule::ALL {
            let smaller = RuleSet::all().without(rule);
            for other in Rule::ALL {
                assert_eq!(smaller.contains(other), other != rule);
            }
            assert_eq!(smaller.with(rule), RuleSet::all());
        }
    }
}
