//! Functions and variables of QEMU's that are no part of its plugin interface, found by name while a plugin is installed.

use std::ffi::{CStr, c_char, c_void};

unsafe extern "C" {
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Where QEMU, or a library that it uses, has what is named so. Null if it keeps it to itself.
pub fn find(name: &CStr) -> *mut c_void {
    // SAFETY: a search by a valid name in all that the process has loaded (a null library is RTLD_DEFAULT).
    unsafe { dlsym(std::ptr::null_mut(), name.as_ptr()) }
}

/// As [`find`], for what a plugin cannot do without.
///
/// # Errors
/// One line if QEMU keeps it to itself.
pub fn require(name: &CStr) -> Result<*mut c_void, String> {
    let found = find(name);
    if found.is_null() {
        let name = name.to_string_lossy();
        return Err(format!("expected a QEMU that exports '{name}', got one that does not; take the distribution's"));
    }
    Ok(found)
}

/// The function of QEMU's that is named so, as the given type of function.
///
/// # Errors
/// One line if QEMU keeps it to itself.
///
/// # Safety
/// `F` is the type of a pointer to the function of that name.
pub unsafe fn function<F: Copy>(name: &CStr) -> Result<F, String> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let found = require(name)?;
    // SAFETY: a pointer that is not null, read as the pointer to a function that it is, as the caller vouches.
    Ok(unsafe { std::mem::transmute_copy(&found) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        assert!(require(c"malloc").is_ok());
        let error = require(c"no_such_function_of_qemu").unwrap_err();
        assert!(error.contains("exports 'no_such_function_of_qemu'"), "{error}");
    }

    #[test]
    fn a_function_is_called_by_its_name() {
        // SAFETY: the type of `abs`.
        let abs = unsafe { function::<extern "C" fn(i32) -> i32>(c"abs") }.unwrap();
        assert_eq!(abs(-7), 7);
    }
}
