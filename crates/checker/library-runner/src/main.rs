//! Loads an adapter of a library (`commutant.h`) and runs batches of windows in it.
//!
//! A program for `qemu-x86_64` with the tracer. Batches come on standard input and results go to standard output (crate
//! `program-runner`); what the library prints goes to standard error.
//!
//! ```text
//! commutant-library-runner --adapter PATH --calls                                list the adapter's calls
//! commutant-library-runner --adapter PATH --cores N --workers N --seed N ...     run batches until standard input ends
//! ```

mod adapter;
mod machine;
mod memory;
mod modules;
mod options;
mod private;
mod progress;
mod target;
mod values;

use std::fs::File;
use std::os::fd::{FromRawFd, RawFd};
use std::process::ExitCode;
use std::sync::Mutex;

use program_runner::planted;
use program_runner::serve::{Program, complain, serve};

use crate::adapter::Adapter;
use crate::modules::ModuleList;
use crate::options::{Mode, Options, Place};
use crate::progress::Progress;
use crate::target::LibraryTarget;

fn main() -> ExitCode {
    match options::parse(std::env::args().skip(1)).and_then(|(place, mode)| run(&place, mode)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            complain::<LibraryProgram>(&why);
            ExitCode::from(2)
        }
    }
}

fn run(place: &Place, mode: Mode) -> Result<(), String> {
    match mode {
        Mode::Calls => {
            let adapter = Adapter::load(place)?;
            adapter.signatures.iter().chain(&planted::SIGNATURES).for_each(|signature| println!("{signature}"));
            Ok(())
        }
        Mode::Batches(options) => {
            let (input, output) = take_streams()?;
            machine::pretend(options.processors, options.seed);
            if options.private_memory {
                memory::use_private_memory();
            }
            machine::keep_descriptors();
            let program = Box::leak(Box::new(LibraryProgram::load(place, options)?));
            serve(program, input, output)
        }
    }
}

/// Standard input and output under numbers that no library expects them at; what stands in their places is empty, and
/// standard error.
fn take_streams() -> Result<(File, File), String> {
    /// Above what libraries open, and below the usual limit.
    const FIRST: RawFd = 900;
    let failed = || format!("taking the standard streams: {}", std::io::Error::last_os_error());
    // SAFETY: the numbers are those of this process's streams, which no one else uses.
    unsafe {
        let input = libc::fcntl(0, libc::F_DUPFD_CLOEXEC, FIRST);
        let output = libc::fcntl(1, libc::F_DUPFD_CLOEXEC, FIRST);
        let nothing = libc::openat(libc::AT_FDCWD, c"/dev/null".as_ptr(), libc::O_RDONLY);
        if input < 0 || output < 0 || nothing < 0 || libc::dup2(nothing, 0) < 0 || libc::dup2(2, 1) < 0 {
            return Err(failed());
        }
        machine::close(nothing);
        Ok((File::from_raw_fd(input), File::from_raw_fd(output)))
    }
}

/// A loaded adapter, and who is informed of it.
struct LibraryProgram {
    adapter: &'static Adapter,
    workers: usize,
    seed: u64,
    /// Guarded by its mutex, which the coordinator alone takes.
    modules: Mutex<Option<ModuleList>>,
    progress: Option<Progress>,
}

impl LibraryProgram {
    fn load(place: &Place, options: Options) -> Result<Self, String> {
        let modules = options.objects.map(|path| ModuleList::begin(&path)).transpose()?;
        let progress = options.progress.map(|path| Progress::map(&path)).transpose()?;
        let adapter = Box::leak(Box::new(Adapter::load(place)?));
        Ok(Self { adapter, workers: options.workers, seed: options.seed, modules: Mutex::new(modules), progress })
    }

    fn list_modules(&self) -> Result<(), String> {
        let mut modules = self.modules.lock().map_err(|_| "a thread panicked".to_owned())?;
        modules.as_mut().map_or(Ok(()), ModuleList::update)
    }
}

impl Program for LibraryProgram {
    type Target = LibraryTarget;

    const NAME: &'static str = "commutant-library-runner";

    fn workers(&self) -> usize {
        self.workers
    }

    fn enter(&self, core: Option<usize>) -> Result<(), String> {
        let number = core.unwrap_or(self.workers);
        machine::set_core(number);
        modules::tell_stack(number);
        self.adapter.enter(number);
        Ok(())
    }

    fn target(&self) -> Result<LibraryTarget, String> {
        self.list_modules()?;
        Ok(LibraryTarget::new(self.adapter, self.workers, self.seed))
    }

    fn window_begins(&self) {
        if let Some(progress) = &self.progress {
            progress.step();
        }
    }

    fn batch_ended(&self) -> Result<(), String> {
        self.list_modules()
    }
}
