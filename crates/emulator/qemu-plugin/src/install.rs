//! What every plugin's installation has in common: the right QEMU, arguments as texts, and one line on standard error for a
//! mistake.

use std::ffi::{CStr, c_char, c_int};

use std::sync::atomic::Ordering;

use crate::abi::{self, Info};

/// The body of `qemu_plugin_install`: hands QEMU's information and the arguments to `start` and gives 0; or -1, for which QEMU
/// ends, after a line that begins with `who`.
///
/// # Safety
/// QEMU passes a valid `info` and `argc` valid, NUL-terminated arguments, which live until its call returns.
pub unsafe fn install(
    who: &str,
    info: *const Info,
    argc: c_int,
    argv: *const *const c_char,
    start: impl FnOnce(&Info, &[&str]) -> Result<(), String>,
) -> c_int {
    // SAFETY: as this function demands.
    let (info, target, texts) = unsafe {
        let texts = (0..argc.max(0) as usize).map(|index| CStr::from_ptr(*argv.add(index)).to_str());
        (&*info, CStr::from_ptr((*info).target_name), texts.collect::<Result<Vec<_>, _>>())
    };
    let result = texts
        .map_err(|_| "expected arguments in UTF-8".to_owned())
        .and_then(|texts| check(info, target.to_str().unwrap_or("?")).map(|()| texts))
        .and_then(|texts| start(info, &texts));
    match result {
        Ok(()) => 0,
        Err(problem) => {
            eprintln!("{who}: {problem}");
            -1
        }
    }
}

fn check(info: &Info, target: &str) -> Result<(), String> {
    let needed = abi::qemu_plugin_version.load(Ordering::Relaxed);
    if !(info.version_min..=info.version_cur).contains(&needed) {
        let (min, cur) = (info.version_min, info.version_cur);
        return Err(format!("expected a QEMU with plugin interface {needed}, got one with {min} to {cur}"));
    }
    abi::set_offered(info.version_cur);
    if target != "x86_64" {
        return Err(format!("expected QEMU for x86_64, got one for {target}"));
    }
    Ok(())
}
