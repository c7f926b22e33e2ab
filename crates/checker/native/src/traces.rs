//! Traces as windows with named findings (crate `mtrace`). Python sees a finding as a number until it asks for its text.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use kernel_naming::{KernelSymbols, KernelTypes, Namer};
use mtrace::conflict::Sharing;
use mtrace::courses::CourseAccess;
use mtrace::findings::{LineExample, NamedAccess, NamedWindow, TraceAnalyzer};
use mtrace::kallsyms::layout_of_kernel;
use mtrace::loaded as names;
use mtrace::names::{NameSource, Names, Symbol};
use mtrace::pictures::{ByteRange, Touched};
use mtrace::rules::Rule;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyIndexError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyTuple;

use crate::transfers;

create_exception!(_native, TraceError, PyException, "A trace that is damaged or ends too early; one line says where.");

/// Adds this part to the native module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("TraceError", module.py().get_type::<TraceError>())?;
    module.add("RULES", PyTuple::new(module.py(), Rule::ALL.map(Rule::name))?)?;
    module.add_function(wrap_pyfunction!(kernel_layout, module)?)?;
    module.add_class::<KernelNames>()?;
    module.add_class::<PyKernelTypes>()?;
    module.add_class::<ProgramNames>()?;
    module.add_class::<LoadedNames>()?;
    module.add_class::<TraceReader>()
}

fn value_error(problem: impl ToString) -> PyErr {
    PyValueError::new_err(problem.to_string())
}

/// Types from raw BTF, or from a `vmlinux` that holds them, and those of modules; None of a kernel that has none.
fn kernel_types(btf: &[u8], modules: &[PyBackedBytes]) -> PyResult<Option<KernelTypes>> {
    if btf.is_empty() {
        return Ok(None);
    }
    let types = if btf.starts_with(b"\x7fELF") { KernelTypes::from_elf(btf) } else { KernelTypes::parse(btf) };
    let mut types = types.map_err(value_error)?;
    modules.iter().try_for_each(|module| types.add_module(module)).map_err(value_error)?;
    Ok(Some(types))
}

/// The text of the tracer's layout file for a kernel, from its `/proc/kallsyms`, its BTF (raw, or a `vmlinux`), and the BTF
/// of the modules that it has loaded. Without BTF (no bytes) it has no part about objects. ValueError says which of them is
/// not what it should be.
#[pyfunction]
#[pyo3(signature = (kallsyms, btf, modules = Vec::new()))]
fn kernel_layout(python: Python<'_>, kallsyms: &[u8], btf: &[u8], modules: Vec<PyBackedBytes>) -> PyResult<String> {
    python.detach(|| {
        let text = std::str::from_utf8(kallsyms).map_err(|_| value_error("expected kernel symbols as text"))?;
        layout_of_kernel(text, kernel_types(btf, &modules)?.as_ref())
            .map(|layout| layout.to_text())
            .map_err(value_error)
    })
}

/// A kernel's types, to be looked up by name.
#[pyclass(frozen, name = "KernelTypes")]
pub struct PyKernelTypes(KernelTypes);

/// A member: its path, offset and size in bits, whether it is a bit field, and whether it lies in a union.
type MemberRow = (String, u64, u64, bool, bool);

#[pymethods]
impl PyKernelTypes {
    /// From BTF, raw or in a `vmlinux`, and that of modules; ValueError says what is wrong with it.
    #[new]
    #[pyo3(signature = (btf, modules = Vec::new()))]
    fn new(python: Python<'_>, btf: &[u8], modules: Vec<PyBackedBytes>) -> PyResult<Self> {
        python.detach(|| Ok(Self(kernel_types(btf, &modules)?.unwrap_or_else(KernelTypes::none))))
    }

    /// Size in bytes of the structure or union of that name, and all its members with those embedded in it; None if there
    /// is none.
    fn structure(&self, name: &str) -> Option<(u64, Vec<MemberRow>)> {
        let size_bytes = self.0.structure_size(name)?;
        let members = self.0.placed_members(name)?.into_iter();
        let rows = members.map(|one| (one.path, one.offset_bits, one.size_bits, one.bit_field, one.in_union));
        Some((size_bytes, rows.collect()))
    }

    /// The names of the structures and unions that hold one of that name as a part.
    fn embedders(&self, name: &str) -> Vec<String> {
        self.0.embedders(name).into_iter().map(str::to_owned).collect()
    }
}

/// A kernel's symbols and types; read once, used by the readers of any number of traces.
#[pyclass(frozen)]
pub struct KernelNames(Arc<Namer>);

#[pymethods]
impl KernelNames {
    /// From `/proc/kallsyms`, BTF (raw, a `vmlinux`, or no bytes: then symbols alone name) and that of loaded modules;
    /// ValueError says what is wrong with them.
    #[new]
    #[pyo3(signature = (kallsyms, btf, modules = Vec::new()))]
    fn new(python: Python<'_>, kallsyms: &[u8], btf: &[u8], modules: Vec<PyBackedBytes>) -> PyResult<Self> {
        python.detach(|| {
            let symbols = KernelSymbols::parse(kallsyms).map_err(value_error)?;
            Ok(Self(Arc::new(Namer::new(kernel_types(btf, &modules)?.unwrap_or_else(KernelTypes::none), symbols))))
        })
    }
}

/// A program's symbols.
#[pyclass(frozen)]
pub struct ProgramNames(Vec<(u64, u64, String)>);

#[pymethods]
impl ProgramNames {
    /// From (first address, first address after, name), in any order.
    #[new]
    fn new(symbols: Vec<(u64, u64, String)>) -> Self {
        Self(symbols)
    }
}

/// Names of a program that loads libraries, from the list that it makes of what is loaded (crate `library-runner`).
#[pyclass(frozen)]
pub struct LoadedNames {
    listing: PathBuf,
}

#[pymethods]
impl LoadedNames {
    /// From the path of the file that the program lists in; it may be empty so far.
    #[new]
    fn new(listing: PathBuf) -> Self {
        Self { listing }
    }
}

/// A name source as Python hands it over.
#[derive(FromPyObject)]
enum AnyNames<'py> {
    Kernel(PyRef<'py, KernelNames>),
    Program(PyRef<'py, ProgramNames>),
    Loaded(PyRef<'py, LoadedNames>),
}

impl AnyNames<'_> {
    fn names(&self) -> Names {
        Names::new(match self {
            AnyNames::Kernel(kernel) => NameSource::Kernel(Arc::clone(&kernel.0)),
            AnyNames::Program(program) => {
                let symbol =
                    |(start, end, name): &(u64, u64, String)| Symbol { start: *start, end: *end, name: name.clone() };
                NameSource::Program(program.0.iter().map(symbol).collect())
            }
            AnyNames::Loaded(loaded) => {
                let listing = loaded.listing.clone();
                let read = move || std::fs::read_to_string(&listing).unwrap_or_default();
                NameSource::Loaded(Box::new(Mutex::new(names::LoadedNames::new(Box::new(read)))))
            }
        })
    }
}

/// A file or pipe whose reading a signal may end, if Python's handler of it raises.
struct InterruptibleFile {
    file: File,
    raised: Option<PyErr>,
}

impl Read for InterruptibleFile {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        loop {
            match self.file.read(bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {
                    if let Err(raised) = Python::attach(|python| python.check_signals()) {
                        self.raised = Some(raised);
                        return Err(std::io::Error::other("a signal"));
                    }
                }
                result => return result,
            }
        }
    }
}

type Analyzer = TraceAnalyzer<BufReader<InterruptibleFile>>;

/// What Python gets of a window: sequence, numbers of findings and of the pictures that show them, ignored lines per rule,
/// counted accesses per core, accesses that the tracer lost, its course.
type WindowParts = (u64, Vec<(u32, u32)>, Vec<u32>, Vec<u64>, u64, CourseParts);
/// What Python gets of a window's course: logged accesses per core, and for each object that shows a finding the number of
/// its picture and per line what was done to it, as `transfers::pack` makes bytes of it.
type CourseParts = (Vec<u32>, Vec<(u32, Vec<Vec<u8>>)>);
/// What Python gets of an access: core, write, offset, size in bytes, function, stack.
type AccessParts = (u8, u8, u8, u8, String, Vec<String>);
/// What Python gets of a finding: object, field, "true", "false" or "neighbour", accesses, the line where it was met first.
type FindingParts = (String, String, &'static str, LockParts, AccessParts, AccessParts, LineParts);
/// What Python gets of a finding's locks: the one that covers it, what that is about, what the finding is about, the lock's
/// number.
type LockParts = (String, String, String, u32);
/// What Python gets of a line: address, fields as (first byte, bytes, name), per core (core, bytes read, bytes written).
type LineParts = (u64, Vec<(u8, u8, String)>, Vec<TouchedParts>);
/// What Python gets of a core's part in a line: core, bytes read, bytes written.
type TouchedParts = (u8, Vec<ByteRange>, Vec<ByteRange>);
/// What Python gets of a picture: the object, and per line its offset in it, number of its fields, per core what it touched.
type PictureParts = (String, Vec<(i64, u32, Vec<TouchedParts>)>);

/// Reads one trace, batch by batch.
#[pyclass]
pub struct TraceReader {
    /// Until the first batch is read: opening must not wait for a tracer that is not started yet.
    unopened: Option<(File, Names)>,
    analyzer: Option<Analyzer>,
}

#[pymethods]
impl TraceReader {
    /// Reads from a descriptor of a file or the read end of a pipe, which stays the caller's. OSError if it is neither.
    #[new]
    fn new(fd: i32, names: AnyNames<'_>) -> PyResult<Self> {
        // Opened again, so that the reader has a descriptor of its own, no matter who closes the other.
        let file = File::open(format!("/proc/self/fd/{fd}"))
            .map_err(|error| PyOSError::new_err(format!("cannot read the trace from descriptor {fd}: {error}")))?;
        Ok(Self { unopened: Some((file, names.names())), analyzer: None })
    }

    /// The windows up to the end of the next batch, or None past the end of the trace. Blocks, with the interpreter
    /// free for other threads. TraceError if the trace is damaged or ends too early.
    fn read_batch(&mut self, python: Python<'_>) -> PyResult<Option<Vec<WindowParts>>> {
        python.detach(|| {
            if let Some((file, names)) = self.unopened.take() {
                let source = BufReader::with_capacity(256 << 10, InterruptibleFile { file, raised: None });
                self.analyzer = Some(TraceAnalyzer::new(source, names).map_err(trace_error)?);
            }
            let analyzer =
                self.analyzer.as_mut().ok_or_else(|| TraceError::new_err("this trace could not be opened"))?;
            let mut windows = Vec::new();
            match analyzer.read_batch(&mut windows) {
                Ok(Some(_)) => Ok(Some(windows.into_iter().map(window_parts).collect())),
                Ok(None) => Ok(None),
                Err(error) => Err(analyzer.source().get_mut().raised.take().unwrap_or_else(|| trace_error(error))),
            }
        })
    }

    /// A finding by the number that a window named it with: (object, field, "true", "false" or "neighbour", (the lock that covers it,
    /// the file or directory that the lock is about, that it is about itself, the number of the lock), first access, second
    /// access, line), an access being (core, write, offset, size in bytes, function, stack).
    fn finding(&self, number: u32) -> PyResult<FindingParts> {
        let found = self.analyzer.as_ref().and_then(|analyzer| analyzer.findings().get(number));
        let (finding, line) =
            found.ok_or_else(|| PyIndexError::new_err(format!("no finding has the number {number}")))?;
        let sharing = match finding.sharing {
            Sharing::True => "true",
            Sharing::False => "false",
            Sharing::Neighbour => "neighbour",
        };
        let (object, field) = (finding.object.clone(), finding.field.clone());
        let (first, second) = (access_parts(&finding.first), access_parts(&finding.second));
        let locks = (finding.under.clone(), finding.under_owner.clone(), finding.owner.clone(), finding.lock_number);
        Ok((object, field, sharing, locks, first, second, line_parts(line)))
    }

    /// A picture by the number that a window named it with: (object, lines), a line being (offset in the object, number of
    /// its fields, per core (core, ranges read, ranges written)). Of a program the offset is the address of the line.
    fn picture(&self, number: u32) -> PyResult<PictureParts> {
        let picture = self.analyzer.as_ref().and_then(|analyzer| analyzer.findings().pictures().get(number));
        let picture = picture.ok_or_else(|| PyIndexError::new_err(format!("no picture has the number {number}")))?;
        let lines = picture.lines.iter().map(|line| (line.offset, line.fields, touched_parts(&line.touched)));
        Ok((picture.holder.clone(), lines.collect()))
    }

    /// What the bytes of a line are called, by the number in a picture: (offset, size in bytes, name) each.
    fn fields(&self, number: u32) -> PyResult<Vec<(u8, u8, String)>> {
        let fields = self.analyzer.as_ref().and_then(|analyzer| analyzer.findings().pictures().fields(number));
        let fields = fields.ok_or_else(|| PyIndexError::new_err(format!("no fields have the number {number}")))?;
        Ok(field_parts(fields))
    }
}

fn trace_error(error: impl ToString) -> PyErr {
    TraceError::new_err(error.to_string())
}

fn window_parts(window: NamedWindow) -> WindowParts {
    let NamedWindow { sequence, lost_accesses, counted_accesses, logged_accesses, ignored_lines, findings, objects } =
        window;
    let packed = |lines: Vec<Vec<CourseAccess>>| lines.iter().map(|line| transfers::pack(line)).collect();
    let objects = objects.into_iter().map(|(picture, lines)| (picture, packed(lines))).collect();
    (sequence, findings, ignored_lines.to_vec(), counted_accesses, lost_accesses, (logged_accesses, objects))
}

fn line_parts(line: &LineExample) -> LineParts {
    let LineExample { address, fields, touched } = line;
    (*address, field_parts(fields), touched_parts(touched))
}

fn field_parts(fields: &[(ByteRange, String)]) -> Vec<(u8, u8, String)> {
    fields.iter().map(|((start, size_bytes), name)| (*start, *size_bytes, name.clone())).collect()
}

fn touched_parts(touched: &[Touched]) -> Vec<TouchedParts> {
    touched.iter().map(|Touched { core, read, written }| (*core, read.clone(), written.clone())).collect()
}

fn access_parts(access: &NamedAccess) -> AccessParts {
    let NamedAccess { core, kind, offset, size_bytes, function, stack } = access;
    (*core, *kind as u8, *offset, *size_bytes, function.clone(), stack.clone())
}
