//! An adapter: a shared object with the constant `commutant_adapter` (`commutant.h`).

use std::ffi::{CStr, CString, c_char, c_void};

use runner::target::Signature;

use crate::options::Place;
use crate::values::{ForeignResult, ForeignValue, MOST_ARGUMENTS};

/// The version of `commutant.h` that this runner knows.
pub const VERSION: u32 = 1;
const MOST_CALLS: usize = 256;
const LONGEST_SIGNATURE_BYTES: usize = 256;

/// A call's function.
pub type Function = unsafe extern "C-unwind" fn(*mut c_void, *const ForeignValue, *mut ForeignResult);

/// `commutant_call`.
#[repr(C)]
struct ForeignCall {
    signature: *const c_char,
    function: Option<Function>,
}

/// `commutant_adapter_type`.
#[repr(C)]
struct ForeignAdapter {
    version: u32,
    size: u32,
    calls: *const ForeignCall,
    make: Option<unsafe extern "C-unwind" fn() -> *mut c_void>,
    drop: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
    reset: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
    settle: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
    enter: Option<unsafe extern "C-unwind" fn(u32)>,
}

/// A loaded adapter; stays loaded until the process ends.
pub struct Adapter {
    /// The calls, by number.
    pub signatures: Vec<Signature>,
    /// Their functions, by the same number.
    pub functions: Vec<Function>,
    foreign: &'static ForeignAdapter,
}

// SAFETY: functions and constants of a loaded object, which any thread may use; the adapter's author promises (commutant.h)
// that calls may come from any thread.
unsafe impl Send for Adapter {}
// SAFETY: as above.
unsafe impl Sync for Adapter {}

fn last_loader_error() -> String {
    // SAFETY: dlerror gives null or a text that is valid until this thread's next call of the loader.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "for a reason that the loader does not tell".to_owned();
    }
    // SAFETY: as above.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().replace('\n', " ")
}

impl Adapter {
    /// Loads a shared object, and takes the adapter there that has no name, or this one.
    ///
    /// # Errors
    /// One line: it cannot be loaded, is no adapter, or one of another version.
    pub fn load(place: &Place) -> Result<Adapter, String> {
        let path = &place.path;
        let text = CString::new(path.as_str()).map_err(|_| "expected a path without NUL".to_owned())?;
        // SAFETY: loading runs the object's initialisers, which is what the user asked for.
        let library = unsafe { libc::dlopen(text.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            return Err(format!("{path} cannot be loaded: {}", last_loader_error()));
        }
        let constant = match &place.name {
            None => "commutant_adapter".to_owned(),
            Some(name) => format!("commutant_adapter_{name}"),
        };
        let text = CString::new(constant.as_str()).map_err(|_| "expected a name without NUL".to_owned())?;
        // SAFETY: the library was loaded above and is never unloaded.
        let symbol = unsafe { libc::dlsym(library, text.as_ptr()) };
        if symbol.is_null() {
            return Err(format!(
                "{path}: expected a constant `{constant}`, found none; an adapter defines it with \
                 `const commutant_adapter_type {constant} = {{...}};` (commutant.h)"
            ));
        }
        // SAFETY: every version of the header begins with these two words.
        let [version, size] = unsafe { symbol.cast::<[u32; 2]>().read_unaligned() };
        if version != VERSION || (size as usize) < size_of::<ForeignAdapter>() {
            return Err(format!(
                "{path}: expected an adapter of version {VERSION} of commutant.h with at least {} bytes, got version \
                 {version} with {size}; compile it again with the header of this version (docs/guides/libraries.md says where it lies)",
                size_of::<ForeignAdapter>()
            ));
        }
        // SAFETY: version and size are those of this structure, which lives as long as the library: forever.
        let foreign: &'static ForeignAdapter = unsafe { &*symbol.cast() };
        if foreign.calls.is_null() || foreign.make.is_none() || foreign.drop.is_none() {
            return Err(format!("{path}: expected `calls`, `make` and `drop` in commutant_adapter"));
        }
        let (mut signatures, mut functions) = (Vec::new(), Vec::new());
        for index in 0.. {
            // SAFETY: the list ends with a call without signature, as commutant.h says, and did not end yet.
            let call = unsafe { &*foreign.calls.add(index) };
            if call.signature.is_null() {
                break;
            }
            // SAFETY: a text that ends with NUL, as commutant.h says.
            let text = unsafe { CStr::from_ptr(call.signature) }.to_string_lossy().into_owned();
            let Some(function) = call.function.filter(|_| index < MOST_CALLS) else {
                return Err(format!("{path}: call {text:?}: expected a function, and at most {MOST_CALLS} calls"));
            };
            signatures.push(parse(&text).ok_or_else(|| {
                format!("{path}: call {text:?}: expected a signature such as \"put(key, value)\", at most {MOST_ARGUMENTS} parameters")
            })?);
            functions.push(function);
        }
        Ok(Adapter { signatures, functions, foreign })
    }

    /// Makes an object.
    ///
    /// # Errors
    /// The adapter gave none.
    pub fn make(&self) -> Result<*mut c_void, String> {
        // SAFETY: checked in `load`; the adapter's own function.
        let object = self.foreign.make.map_or(std::ptr::null_mut(), |make| unsafe { make() });
        if object.is_null() { Err("the adapter's `make` returned no object".to_owned()) } else { Ok(object) }
    }

    /// Gives an object up that [`Adapter::make`] made.
    pub fn give_up(&self, object: *mut c_void) {
        if let Some(drop) = self.foreign.drop {
            // SAFETY: made by `make`, given up once.
            unsafe { drop(object) };
        }
    }

    /// Whether [`Adapter::reset`] does anything.
    pub fn resets(&self) -> bool {
        self.foreign.reset.is_some()
    }

    /// Empties an object; false if the adapter cannot.
    pub fn reset(&self, object: *mut c_void) -> bool {
        self.foreign.reset.is_some_and(|reset| {
            // SAFETY: made by `make` and not given up.
            unsafe { reset(object) };
            true
        })
    }

    /// What each core does between windows, if the adapter wants it.
    pub fn settle(&self, object: *mut c_void) {
        if let Some(settle) = self.foreign.settle {
            // SAFETY: made by `make` and not given up.
            unsafe { settle(object) };
        }
    }

    /// Whether [`Adapter::settle`] does anything.
    pub fn settles(&self) -> bool {
        self.foreign.settle.is_some()
    }

    /// The calling thread is that of a core from now on.
    pub fn enter(&self, core: usize) {
        if let Some(enter) = self.foreign.enter {
            // SAFETY: once per thread, as commutant.h says.
            unsafe { enter(core as u32) };
        }
    }
}

/// Reads `name(parameter, ...)`. Texts live as long as the process, as an adapter does.
fn parse(text: &str) -> Option<Signature> {
    let is_name = |name: &str| {
        name.chars().all(|letter| letter == '_' || letter.is_ascii_alphanumeric())
            && name.chars().next().is_some_and(|letter| !letter.is_ascii_digit())
    };
    let (name, rest) = text.split_once('(')?;
    let inside = rest.strip_suffix(')')?;
    let parameters: Vec<&str> =
        if inside.trim().is_empty() { Vec::new() } else { inside.split(',').map(str::trim).collect() };
    let fits = text.len() <= LONGEST_SIGNATURE_BYTES && parameters.len() <= MOST_ARGUMENTS;
    if !fits || !is_name(name) || !parameters.iter().all(|parameter| is_name(parameter)) {
        return None;
    }
    let leak = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
    let parameters: Vec<&'static str> = parameters.into_iter().map(leak).collect();
    Some(Signature { name: leak(name), parameters: Box::leak(parameters.into_boxed_slice()) })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn signatures_are_read_as_models_write_them() {
        for (text, expected) in [
            ("put(key, value)", Some("put(key, value)")),
            ("len()", Some("len()")),
            ("pop( )", Some("pop()")),
            ("put(key,value)", Some("put(key, value)")),
            ("put", None),
            ("put(key", None),
            ("put(key, )", None),
            ("1put()", None),
            ("put(a b)", None),
            ("(a)", None),
        ] {
            assert_eq!(parse(text).map(|signature| signature.to_string()).as_deref(), expected, "{text}");
        }
        assert!(parse("call(a, b, c, d, e, f, g, h, i)").is_none());
    }
}
