//! What is loaded where: a list for those who name addresses, in a file that grows.
//!
//! ```text
//! module <first address> <first address after> <bias> <path>      hexadecimal; the bias is what was added to the file's
//! stack <first address> <first address after> <core>              the stack of a core's thread, with its thread-locals
//! end                                                              the list up to here is whole
//! ```
//! The list is written again when a module comes or goes; the last whole one holds.

use std::ffi::{CStr, c_int, c_void};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::mem::MaybeUninit;
use std::sync::Mutex;

/// The file, and what was written.
pub struct ModuleList {
    file: File,
    told: String,
    /// Lines about stacks. Guarded by the mutex: threads add their own when they start.
    stacks: &'static Mutex<String>,
}

static STACKS: Mutex<String> = Mutex::new(String::new());

/// The calling thread is that of a core.
pub fn tell_stack(core: usize) {
    let (mut start, mut size) = (std::ptr::null_mut::<c_void>(), 0);
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: the structure is filled in by the first call, read by the second, and given up by the third.
    let known = unsafe {
        libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) == 0
            && libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut start, &raw mut size) == 0
            && libc::pthread_attr_destroy(attributes.as_mut_ptr()) == 0
    };
    if let Ok(mut stacks) = STACKS.lock()
        && known
    {
        *stacks += &format!("stack {:x} {:x} {core}\n", start as usize, start as usize + size);
    }
}

impl ModuleList {
    /// A list in a file that exists.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn begin(path: &str) -> Result<Self, String> {
        let file = OpenOptions::new().append(true).open(path).map_err(|error| format!("{path}: {error}"))?;
        Ok(Self { file, told: String::new(), stacks: &STACKS })
    }

    /// Tells what is loaded now, if it is not what was written last.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn update(&mut self) -> Result<(), String> {
        let mut list = String::new();
        // SAFETY: `add` gets the pointer to `list` that is passed here, while this call runs.
        unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut list).cast()) };
        list += &self.stacks.lock().map_err(|_| "a thread panicked".to_owned())?;
        list += "end\n";
        if list != self.told {
            self.file.write_all(list.as_bytes()).map_err(|error| format!("listing modules: {error}"))?;
            self.told = list;
        }
        Ok(())
    }
}

unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _size: usize, list: *mut c_void) -> c_int {
    // SAFETY: the loader's structure, valid while this function runs; the list is the one of `update`.
    let (info, list) = unsafe { (&*info, &mut *list.cast::<String>()) };
    // SAFETY: the loader's text and array, as its structure says.
    let (name, headers) = unsafe {
        (
            CStr::from_ptr(info.dlpi_name).to_string_lossy(),
            std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)),
        )
    };
    let path = if name.is_empty() && list.is_empty() {
        std::env::current_exe().map_or_else(|_| String::new(), |path| path.display().to_string())
    } else {
        name.into_owned()
    };
    let loads = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let start = loads().map(|header| header.p_vaddr).min();
    let end = loads().map(|header| header.p_vaddr + header.p_memsz).max();
    if let (Some(start), Some(end)) = (start, end)
        && path.starts_with('/')
        && !path.contains('\n')
    {
        let bias = info.dlpi_addr;
        *list += &format!("module {:x} {:x} {bias:x} {path}\n", start.wrapping_add(bias), end.wrapping_add(bias));
    }
    0
}
