//! The plugin's arguments: `-plugin liblocks_plugin.so,out=PATH,window=128,...`.

use std::path::PathBuf;

use lock_study::Options;

/// What the arguments say.
#[derive(Debug, Clone)]
pub struct Arguments {
    /// Where the report goes: `out`. A forked child's goes to `PATH.PID`.
    pub out: PathBuf,
    /// How sections are compared: `window`, `filter_locks`, `filter_same_thread`.
    pub options: Options,
    /// Whether accesses to the thread's stack are left out: `filter_stack`.
    pub filters_stack: bool,
    /// Whether atomic instructions on unannotated words are taken for lock operations: `inlined`.
    pub inlined: bool,
    /// The file whose first byte switches recording on and off, where not the whole run is recorded: `span`.
    pub span: Option<PathBuf>,
    /// Whether the program's own annotations switch it: `span_annotations`.
    pub heeds_annotations: bool,
    /// Seconds between two reports while the program runs: `every`.
    pub every_seconds: u64,
    /// For a machine: what its kernel's symbols, types and memory are, `kallsyms`, `btf`, `ram`.
    pub kernel: Option<KernelFiles>,
}

/// Files that tell of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelFiles {
    /// As in the guest's `/proc/kallsyms`.
    pub kallsyms: PathBuf,
    /// As in the guest's `/sys/kernel/btf/vmlinux`.
    pub btf: PathBuf,
    /// The file behind the guest's RAM.
    pub ram: PathBuf,
}

const KNOWN: &str = "out, window, filter_locks, filter_same_thread, filter_stack, inlined, span, span_annotations, every, kallsyms, btf, ram";
const WINDOW_LIMIT_SECTIONS: usize = 1 << 16;

impl Arguments {
    /// Reads `key=value` texts.
    ///
    /// # Errors
    /// One line that says what was expected and what came.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let (mut out, mut kallsyms, mut btf, mut ram) = (None, None, None, None);
        let mut arguments = Self {
            out: PathBuf::new(),
            options: Options::default(),
            filters_stack: true,
            inlined: true,
            span: None,
            heeds_annotations: false,
            every_seconds: 2,
            kernel: None,
        };
        for text in texts {
            let (key, value) = text.split_once('=').ok_or_else(|| format!("expected KEY=VALUE, got '{text}'"))?;
            match key {
                "out" | "span" | "kallsyms" | "btf" | "ram" if value.is_empty() => {
                    return Err(format!("expected {key}=PATH, got an empty path"));
                }
                "out" => out = Some(PathBuf::from(value)),
                "kallsyms" => kallsyms = Some(PathBuf::from(value)),
                "btf" => btf = Some(PathBuf::from(value)),
                "ram" => ram = Some(PathBuf::from(value)),
                "span" => arguments.span = Some(PathBuf::from(value)),
                "span_annotations" => arguments.heeds_annotations = switch(key, value)?,
                "window" => {
                    arguments.options.window_sections = value
                        .parse()
                        .ok()
                        .filter(|sections| (1..=WINDOW_LIMIT_SECTIONS).contains(sections))
                        .ok_or_else(|| format!("expected window=1 to {WINDOW_LIMIT_SECTIONS}, got window={value}"))?;
                }
                "every" => {
                    arguments.every_seconds =
                        value.parse().map_err(|_| format!("expected every=SECONDS, got every={value}"))?;
                }
                "filter_locks" => arguments.options.filters_lock_words = switch(key, value)?,
                "filter_same_thread" => arguments.options.compares_own_sections = !switch(key, value)?,
                "filter_stack" => arguments.filters_stack = switch(key, value)?,
                "inlined" => arguments.inlined = switch(key, value)?,
                _ => return Err(format!("expected one of {KNOWN}, got '{key}'")),
            }
        }
        arguments.out = out.ok_or("expected out=PATH, got no such argument")?;
        arguments.kernel = match (kallsyms, btf, ram) {
            (None, None, None) => None,
            (Some(kallsyms), Some(btf), Some(ram)) => Some(KernelFiles { kallsyms, btf, ram }),
            _ => return Err("expected kallsyms=PATH, btf=PATH and ram=PATH together, got not all of them".to_owned()),
        };
        Ok(arguments)
    }
}

fn switch(key: &str, value: &str) -> Result<bool, String> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("expected {key}=on or {key}=off, got {key}={value}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_arguments_are_understood() {
        let texts = ["out=/tmp/x", "window=50", "filter_locks=off", "filter_same_thread=off", "filter_stack=off"];
        let arguments = Arguments::parse(texts.into_iter().chain(["inlined=off", "every=7"])).expect("correct");
        assert_eq!(arguments.out, PathBuf::from("/tmp/x"));
        assert_eq!((arguments.options.window_sections, arguments.every_seconds), (50, 7));
        assert!(!arguments.options.filters_lock_words && arguments.options.compares_own_sections);
        assert!(!arguments.filters_stack && !arguments.inlined);
    }

    #[test]
    fn errors_say_what_was_expected() {
        for (texts, message) in [
            (&[][..], "expected out=PATH, got no such argument"),
            (&["out"], "expected KEY=VALUE, got 'out'"),
            (&["out="], "expected out=PATH, got an empty path"),
            (&["out=x", "window=0"], "expected window=1 to 65536, got window=0"),
            (&["out=x", "inlined=1"], "expected inlined=on or inlined=off, got inlined=1"),
            (&["out=x", "depth=1"], &format!("expected one of {KNOWN}, got 'depth'")),
        ] {
            assert_eq!(Arguments::parse(texts.iter().copied()).map(|_| ()), Err(message.to_owned()));
        }
    }
}
