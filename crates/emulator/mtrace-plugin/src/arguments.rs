//! The plugin's arguments: `-plugin libmtrace_plugin.so,out=PATH,layout=PATH,...`.

use std::path::PathBuf;

use mtrace::record::Mode;
use mtrace::rules::{Rule, RuleSet};

/// Addresses that a test may map; `docs/reference/trace-format.md` lists the defaults.
const DEFAULT_USER_BASE: u64 = 0x6000_0000_0000;
/// Size of that window.
const DEFAULT_USER_BYTES: u64 = 64 << 20;

/// What the arguments say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arguments {
    /// Where the trace goes: `out`, a path (`/proc/self/fd/N` for an inherited descriptor).
    pub out: PathBuf,
    /// The layout file: `layout`.
    pub layout: Option<PathBuf>,
    /// The file that holds the guest's RAM: `ram`.
    pub ram: Option<PathBuf>,
    /// Guest RAM below the gap at 4 GiB, in bytes: `ram_below_4g` (default: all of it).
    pub ram_below_4g_bytes: u64,
    /// What the caller believes to trace: `mode=user|system`; must be what QEMU says.
    pub mode: Option<Mode>,
    /// Whether accesses are recorded: `record=on|off`. Without, windows are only counted.
    pub record: bool,
    /// Start of the addresses that a test may map: `user_base`.
    pub user_base: u64,
    /// Their number of bytes: `user_size`.
    pub user_bytes: u64,
    /// Rules that are switched on: `ignore_RULE=on|off`, each on by default.
    pub rules: RuleSet,
    /// Whether neighbouring lines count, too: `neighbours=on|off`.
    pub neighbours: bool,
}

const KNOWN: &str = "out, layout, ram, ram_below_4g, mode, record, user_base, user_size, neighbours, ignore_RULE";

impl Arguments {
    /// Reads `key=value` texts.
    ///
    /// # Errors
    /// One line that says what was expected and what came.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Arguments, String> {
        let mut out = None;
        let mut arguments = Arguments {
            out: PathBuf::new(),
            layout: None,
            ram: None,
            ram_below_4g_bytes: u64::MAX,
            mode: None,
            record: true,
            user_base: DEFAULT_USER_BASE,
            user_bytes: DEFAULT_USER_BYTES,
            rules: RuleSet::all(),
            neighbours: false,
        };
        for text in texts {
            let (key, value) = text.split_once('=').ok_or_else(|| format!("expected KEY=VALUE, got '{text}'"))?;
            match key {
                "out" => out = Some(path(key, value)?),
                "layout" => arguments.layout = Some(path(key, value)?),
                "ram" => arguments.ram = Some(path(key, value)?),
                "ram_below_4g" => arguments.ram_below_4g_bytes = number(key, value)?,
                "mode" => {
                    arguments.mode = Some(match value {
                        "user" => Mode::User,
                        "system" => Mode::System,
                        _ => return Err(format!("expected mode=user or mode=system, got mode={value}")),
                    });
                }
                "record" => arguments.record = switch(key, value)?,
                "neighbours" => arguments.neighbours = switch(key, value)?,
                "user_base" => arguments.user_base = number(key, value)?,
                "user_size" => arguments.user_bytes = number(key, value)?,
                _ => {
                    let rule = key.strip_prefix("ignore_").ok_or(()).and_then(|name| Rule::from_name(name).ok_or(()));
                    let Ok(rule) = rule else {
                        let rules = Rule::ALL.map(Rule::name).join(", ");
                        return Err(format!("expected one of {KNOWN} (RULE: {rules}), got '{key}'"));
                    };
                    let rules = arguments.rules;
                    arguments.rules = if switch(key, value)? { rules.with(rule) } else { rules.without(rule) };
                }
            }
        }
        arguments.out = out.ok_or("expected out=PATH, got no such argument")?;
        if arguments.user_base.checked_add(arguments.user_bytes).is_none_or(|end| end > 1 << 47) {
            let (base, bytes) = (arguments.user_base, arguments.user_bytes);
            return Err(format!(
                "expected a window below 0x800000000000, got user_base={base:#x}, user_size={bytes:#x}"
            ));
        }
        Ok(arguments)
    }
}

fn path(key: &str, value: &str) -> Result<PathBuf, String> {
    if value.is_empty() { Err(format!("expected {key}=PATH, got an empty path")) } else { Ok(PathBuf::from(value)) }
}

fn switch(key: &str, value: &str) -> Result<bool, String> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("expected {key}=on or {key}=off, got {key}={value}")),
    }
}

fn number(key: &str, value: &str) -> Result<u64, String> {
    let parsed = match value.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => value.parse(),
    };
    parsed.map_err(|_| format!("expected {key}=NUMBER (decimal, or hexadecimal with 0x), got {key}={value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_arguments_are_understood() {
        let texts = [
            "out=/dev/fd/3",
            "layout=l",
            "ram=r",
            "ram_below_4g=0xc0000000",
            "mode=system",
            "record=off",
            "user_base=0x1000",
            "user_size=4096",
            "ignore_softirq=off",
            "ignore_runner=on",
            "neighbours=on",
        ];
        let arguments = Arguments::parse(texts).expect("correct arguments");
        assert_eq!(
            arguments,
            Arguments {
                out: "/dev/fd/3".into(),
                layout: Some("l".into()),
                ram: Some("r".into()),
                ram_below_4g_bytes: 3 << 30,
                mode: Some(Mode::System),
                record: false,
                user_base: 0x1000,
                user_bytes: 4096,
                rules: RuleSet::all().without(Rule::Softirq),
                neighbours: true,
            }
        );
    }

    #[test]
    fn errors_say_what_was_expected() {
        for (texts, message) in [
            (&[][..], "expected out=PATH, got no such argument"),
            (&["out"], "expected KEY=VALUE, got 'out'"),
            (&["out="], "expected out=PATH, got an empty path"),
            (&["out=x", "record=yes"], "expected record=on or record=off, got record=yes"),
            (&["out=x", "mode=kernel"], "expected mode=user or mode=system, got mode=kernel"),
            (
                &["out=x", "user_base=12z"],
                "expected user_base=NUMBER (decimal, or hexadecimal with 0x), got user_base=12z",
            ),
            (
                &["out=x", "user_base=0xffffffffffffffff"],
                "expected a window below 0x800000000000, got user_base=0xffffffffffffffff, user_size=0x4000000",
            ),
            (
                &["out=x", "ignore_all=off"],
                "expected one of out, layout, ram, ram_below_4g, mode, record, user_base, user_size, neighbours, ignore_RULE \
              (RULE: runner, interrupt, softirq, other_task, allocation_clear, device_memory), got 'ignore_all'",
            ),
        ] {
            assert_eq!(Arguments::parse(texts.iter().copied()), Err(message.to_owned()));
        }
    }
}
