//! The layout file: where in the traced system the functions lie that the ignoring rules speak of.
//!
//! The tracer knows no symbol by itself; it compares addresses with this file. It is text, one entry per line,
//! addresses in hexadecimal without prefix, ranges with their end excluded:
//!
//! ```text
//! commutant-layout 1
//! system_call ffffffff82000080 entry_SYSCALL_64
//! interrupt ffffffff82000e50 asm_common_interrupt
//! task_switch ffffffff82000000 ffffffff82000043 __switch_to_asm
//! [objects]
//! ...
//! ```
//!
//! What follows the line `[objects]` belongs to the naming of kernel objects and is handed on as it is. A file for user
//! mode may consist of the first line alone. Parsing is strict: an unknown key, a range without bytes or a missing
//! field is an error with its line number.

use std::fmt::Write as _;

/// First line of a layout file.
const FIRST_LINE: &str = "commutant-layout 1";
/// Starts the part that [`Layout`] hands on.
const OBJECTS_LINE: &str = "[objects]";
/// Longest layout file that is read.
pub const MAX_LAYOUT_BYTES: usize = 1 << 20;

/// What the tracer has to do when the instruction at an address is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryPoint {
    /// A system call begins, with an empty call stack.
    SystemCall,
    /// A timer or device interrupt begins.
    Interrupt,
    /// An interrupt begins that another core sent: its work counts.
    InterProcessorInterrupt,
    /// A fault begins that belongs to what it interrupts.
    Exception,
    /// The softirq dispatcher is called, or another function whose work is a tick's.
    Softirq,
    /// A new task runs for the first time.
    TaskStart,
    /// The scheduler is called; from a function that preempts, the switch is none of the call's work.
    Schedule,
}

impl EntryPoint {
    const ALL: [(EntryPoint, &'static str); 7] = [
        (EntryPoint::SystemCall, "system_call"),
        (EntryPoint::Interrupt, "interrupt"),
        (EntryPoint::InterProcessorInterrupt, "ipi"),
        (EntryPoint::Exception, "exception"),
        (EntryPoint::Softirq, "softirq"),
        (EntryPoint::TaskStart, "task_start"),
        (EntryPoint::Schedule, "schedule"),
    ];
}

/// What the tracer has to know of the code or data in a range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RangeKind {
    /// The function that switches from one task's stack to another's.
    TaskSwitch,
    /// A function that clears memory.
    Clear,
    /// A function that allocates memory, and clears it where asked to.
    Allocator,
    /// Data of the program that runs the test.
    RunnerData,
    /// A function that calls the scheduler because the task's time is over, not because it waits.
    Preemption,
}

impl RangeKind {
    const ALL: [(RangeKind, &'static str); 5] = [
        (RangeKind::TaskSwitch, "task_switch"),
        (RangeKind::Clear, "clear"),
        (RangeKind::Allocator, "allocator"),
        (RangeKind::RunnerData, "runner_data"),
        (RangeKind::Preemption, "preemption"),
    ];
}

/// A named address range, end excluded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// What lies there.
    pub kind: RangeKind,
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// The symbol, for messages only.
    pub name: String,
}

/// A named address at which something begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What begins there.
    pub point: EntryPoint,
    /// The address.
    pub address: u64,
    /// The symbol, for messages only.
    pub name: String,
}

/// A layout file's content.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layout {
    /// Entry points, in the order of the file.
    pub entries: Vec<Entry>,
    /// Ranges, in the order of the file.
    pub ranges: Vec<Range>,
    /// The part after `[objects]`, if there is one.
    pub objects: Option<String>,
}

/// What is wrong with a layout file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("layout file, line {line}: {problem}")]
pub struct LayoutError {
    /// The line, counted from 1.
    pub line: usize,
    /// What was expected and what came.
    pub problem: String,
}

impl Layout {
    /// Reads a layout file's text.
    ///
    /// # Errors
    /// [`LayoutError`] for the first line that is not as described in this module.
    pub fn parse(text: &str) -> Result<Layout, LayoutError> {
        let error = |line: usize, problem: String| Err(LayoutError { line, problem });
        if text.len() > MAX_LAYOUT_BYTES {
            return error(1, format!("expected at most {MAX_LAYOUT_BYTES} bytes, got {}", text.len()));
        }
        let mut rest = text;
        let mut layout = Layout::default();
        for number in 1.. {
            if rest.is_empty() && number > 1 {
                break;
            }
            let (line, behind) = rest.split_once('\n').unwrap_or((rest, ""));
            rest = behind;
            if number == 1 {
                if line != FIRST_LINE {
                    return error(1, format!("expected '{FIRST_LINE}', got '{}'", shorten(line)));
                }
                continue;
            }
            if line == OBJECTS_LINE {
                layout.objects = Some(rest.to_owned());
                break;
            }
            if let Err(problem) = layout.parse_line(line) {
                return error(number, problem);
            }
        }
        Ok(layout)
    }

    fn parse_line(&mut self, line: &str) -> Result<(), String> {
        let fields: Vec<&str> = line.split(' ').collect();
        let key = fields[0];
        let expect_fields = |form: &str, count: usize| match fields.len() {
            length if length == count && !fields[count - 1].is_empty() => Ok(()),
            _ => Err(format!("expected '{key} {form}', got '{}'", shorten(line))),
        };
        if let Some((point, _)) = EntryPoint::ALL.iter().find(|(_, name)| *name == key) {
            expect_fields("ADDRESS NAME", 3)?;
            let entry = Entry { point: *point, address: parse_address(fields[1])?, name: fields[2].to_owned() };
            if let Some(other) = self.entries.iter().find(|other| other.address == entry.address) {
                return Err(format!("expected one entry per address, got '{}' and '{}'", other.name, entry.name));
            }
            self.entries.push(entry);
        } else if let Some((kind, _)) = RangeKind::ALL.iter().find(|(_, name)| *name == key) {
            expect_fields("START END NAME", 4)?;
            let (start, end) = (parse_address(fields[1])?, parse_address(fields[2])?);
            if start >= end {
                return Err(format!("expected a range that ends behind its start, got {start:x} to {end:x}"));
            }
            self.ranges.push(Range { kind: *kind, start, end, name: fields[3].to_owned() });
        } else {
            let points = EntryPoint::ALL.iter().map(|(_, name)| *name);
            let known: Vec<&str> = points.chain(RangeKind::ALL.iter().map(|(_, name)| *name)).collect();
            return Err(format!("expected one of {}, got '{}'", known.join(", "), shorten(key)));
        }
        Ok(())
    }

    /// The file's text; [`Layout::parse`] reads it back.
    pub fn to_text(&self) -> String {
        let mut text = format!("{FIRST_LINE}\n");
        for entry in &self.entries {
            let key = EntryPoint::ALL.iter().find(|(point, _)| *point == entry.point).map_or("", |(_, name)| name);
            let _ = writeln!(text, "{key} {:x} {}", entry.address, entry.name);
        }
        for range in &self.ranges {
            let key = RangeKind::ALL.iter().find(|(kind, _)| *kind == range.kind).map_or("", |(_, name)| name);
            let _ = writeln!(text, "{key} {:x} {:x} {}", range.start, range.end, range.name);
        }
        if let Some(objects) = &self.objects {
            let _ = write!(text, "{OBJECTS_LINE}\n{objects}");
        }
        text
    }

    /// What begins at an address.
    pub fn entry_at(&self, address: u64) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.address == address)
    }

    /// Whether an address lies in a range of that kind.
    pub fn is_in(&self, kind: RangeKind, address: u64) -> bool {
        self.ranges.iter().any(|range| range.kind == kind && (range.start..range.end).contains(&address))
    }
}

fn parse_address(text: &str) -> Result<u64, String> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match u64::from_str_radix(text, 16) {
        Ok(address) if plain => Ok(address),
        _ => Err(format!("expected a hexadecimal address of at most 16 digits, got '{}'", shorten(text))),
    }
}

/// Foreign text for a message: one line of bounded length without control characters.
fn shorten(text: &str) -> String {
    text.chars().take(60).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "commutant-layout 1\nsystem_call ffffffff82000080 entry_SYSCALL_64\n\
                         interrupt 10 a\nclear 20 30 memset\n[objects]\nx\ny\n";

    #[test]
    fn text_leads_back_to_the_layout() {
        let layout = Layout::parse(SMALL).expect("a correct file");
        assert_eq!(layout.to_text(), SMALL);
        assert_eq!(layout.entry_at(0x10).map(|entry| entry.point), Some(EntryPoint::Interrupt));
        assert!(layout.is_in(RangeKind::Clear, 0x2f) && !layout.is_in(RangeKind::Clear, 0x30));
        assert!(!layout.is_in(RangeKind::Allocator, 0x2f));
        assert_eq!(layout.objects.as_deref(), Some("x\ny\n"));
    }

    #[test]
    fn errors_name_line_and_expectation() {
        let first = format!("{FIRST_LINE}\n");
        for (text, line, part) in [
            ("", 1, "expected 'commutant-layout 1', got ''"),
            ("commutant-layout 2\n", 1, "got 'commutant-layout 2'"),
            (&*format!("{first}nonsense 1 2"), 2, "expected one of system_call, "),
            (&*format!("{first}\n"), 2, "got ''"),
            (&*format!("{first}interrupt 10"), 2, "expected 'interrupt ADDRESS NAME', got 'interrupt 10'"),
            (&*format!("{first}interrupt 10 "), 2, "expected 'interrupt ADDRESS NAME'"),
            (&*format!("{first}interrupt +1 a"), 2, "got '+1'"),
            (&*format!("{first}interrupt 12345678123456781 a"), 2, "at most 16 digits"),
            (&*format!("{first}clear 10 10 a"), 2, "a range that ends behind its start"),
            (&*format!("{first}interrupt 1 a\nipi 1 b"), 3, "one entry per address, got 'a' and 'b'"),
        ] {
            let error = Layout::parse(text).expect_err(text);
            assert_eq!(error.line, line, "{text}");
            assert!(error.problem.contains(part), "{}", error.problem);
            assert_eq!(error.to_string().lines().count(), 1);
        }
    }

    #[test]
    fn a_text_of_the_largest_size_is_read() {
        let start = format!("{FIRST_LINE}\n[objects]\n");
        let largest = format!("{start}{}\n", "x".repeat(MAX_LAYOUT_BYTES - start.len() - 1));
        assert!(Layout::parse(&largest).is_ok());
        let problem = Layout::parse(&format!("{largest}x")).expect_err("one byte more").problem;
        assert!(problem.starts_with("expected at most"), "{problem}");
    }
}
