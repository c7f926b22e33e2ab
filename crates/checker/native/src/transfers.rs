//! Transfers of lines (crate `transfers`) for courses as Python keeps them: packed, eight bytes an access.
//!
//! ```text
//! | position u32 | core u8 | kind u8 | first byte u8 | bytes u8 |      little-endian; core by core, each core's in order
//! ```

use std::collections::HashMap;

use mtrace::courses::CourseAccess;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use transfers::{Access, Course, Kind, Part, Protocol};

const ACCESS_BYTES: usize = 8;

/// Adds this part to the native module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(course_transfers, module)?)
}

/// The bytes of a line's course.
pub fn pack(course: &[CourseAccess]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(course.len() * ACCESS_BYTES);
    for access in course {
        bytes.extend_from_slice(&access.position.to_le_bytes());
        bytes.extend_from_slice(&[access.core, access.kind as u8, access.offset, access.size_bytes]);
    }
    bytes
}

/// The accesses of a line by core.
fn unpack(bytes: &[u8], periods: &[u32]) -> PyResult<Vec<Vec<Access>>> {
    let mut cores = vec![Vec::new(); periods.len()];
    let (accesses, rest) = bytes.as_chunks::<ACCESS_BYTES>();
    if !rest.is_empty() {
        return Err(PyValueError::new_err(format!("expected accesses of {ACCESS_BYTES} bytes, got {}", bytes.len())));
    }
    for &[a, b, c, d, core, kind, offset, size_bytes] in accesses {
        let position = u32::from_le_bytes([a, b, c, d]);
        let period = periods.get(usize::from(core)).copied().unwrap_or(0);
        let kind = Kind::from_number(kind).filter(|_| offset < 64 && (1..=64 - offset).contains(&size_bytes));
        let (Some(kind), true) = (kind, position < period) else {
            let expected = format!("position {position} of core {core}, {size_bytes} bytes from byte {offset}");
            return Err(PyValueError::new_err(format!("expected an access of the window, got {expected}")));
        };
        let bytes = (u64::MAX >> (64 - size_bytes)) << offset;
        cores[usize::from(core)].push(Access { position, kind, bytes });
    }
    Ok(cores)
}

/// What a new line has of an old one: line, core, bytes whose reads come along, bytes whose writes do.
type PartNumbers = (usize, usize, u64, u64);

/// What cores did to an object in one window: the accesses of each core's call, and per line its course.
type Meeting = (Vec<u32>, Vec<PyBackedBytes>);

/// For each of several objects with lines alike, the expected transfers in each of several layouts, a layout being new lines,
/// each of them parts: for caches that share a modified line on a read, and for those that take it over. ValueError if a
/// course is damaged.
#[pyfunction]
fn course_transfers(
    python: Python<'_>,
    meetings: Vec<Meeting>,
    layouts: Vec<Vec<Vec<PartNumbers>>>,
    cores: u32,
) -> PyResult<Vec<Vec<(f64, f64)>>> {
    if cores < 2 {
        return Err(PyValueError::new_err(format!("expected two cores or more, got {cores}")));
    }
    let layouts = Layouts::of(layouts);
    python.detach(|| meetings.into_iter().map(|meeting| layouts.measured(meeting, cores)).collect())
}

/// Layouts by the lines that they consist of. Most lines are those of many layouts, and measured once.
struct Layouts {
    lines: Vec<Vec<Part>>,
    /// For each layout the numbers of its lines.
    layouts: Vec<Vec<usize>>,
}

impl Layouts {
    fn of(layouts: Vec<Vec<Vec<PartNumbers>>>) -> Self {
        let mut numbers: HashMap<Vec<Part>, usize> = HashMap::new();
        let mut lines = Vec::new();
        let mut number = |line: Vec<PartNumbers>| {
            let part = |(line, core, read, written)| Part { line, core, read, written };
            let parts: Vec<Part> = line.into_iter().map(part).collect();
            *numbers.entry(parts).or_insert_with_key(|parts| {
                lines.push(parts.clone());
                lines.len() - 1
            })
        };
        let layouts = layouts.into_iter().map(|layout| layout.into_iter().map(&mut number).collect()).collect();
        Self { lines, layouts }
    }

    /// What an object costs in each layout.
    fn measured(&self, (periods, courses): Meeting, cores: u32) -> PyResult<Vec<(f64, f64)>> {
        let lines = courses.iter().map(|line| unpack(line, &periods)).collect::<PyResult<Vec<_>>>()?;
        let (line_count, core_count) = (lines.len(), periods.len());
        if self.lines.iter().flatten().any(|part| part.line >= line_count || part.core >= core_count) {
            return Err(PyValueError::new_err("a layout names a line or a core that the course does not have"));
        }
        let course = Course { periods, lines };
        let of = |line: &Vec<Part>, protocol| course.transfers(line, cores, protocol);
        let costs: Vec<(f64, f64)> =
            self.lines.iter().map(|line| (of(line, Protocol::Plain), of(line, Protocol::TakesOver))).collect();
        let sum = |layout: &Vec<usize>| {
            layout.iter().fold((0.0, 0.0), |sum, &line| (sum.0 + costs[line].0, sum.1 + costs[line].1))
        };
        Ok(self.layouts.iter().map(sum).collect())
    }
}
