//! Installation: arguments are checked before QEMU starts; a mistake is one line on standard error.

use std::ffi::{CStr, c_char, c_int};

use qemu_plugin::abi::{API_VERSION, Info, PluginId};

use crate::arguments::Arguments;
use crate::program;

/// QEMU's call after loading the plugin. Returns 0, or -1 to refuse.
///
/// # Safety
/// QEMU passes a valid `info` and `argc` valid, NUL-terminated arguments, which live until this function returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: PluginId,
    info: *const Info,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: as this function demands.
    let (info, target, texts) = unsafe {
        let texts = (0..argc.max(0) as usize).map(|index| CStr::from_ptr(*argv.add(index)).to_str());
        (&*info, CStr::from_ptr((*info).target_name), texts.collect::<Result<Vec<_>, _>>())
    };
    let result = match texts {
        Ok(texts) => prepare(info, target.to_str().unwrap_or("?"), &texts),
        Err(_) => Err("expected arguments in UTF-8".to_owned()),
    };
    match result {
        Ok(arguments) => {
            program::install(id, arguments);
            0
        }
        Err(problem) => {
            eprintln!("commutant lock recorder: {problem}");
            -1
        }
    }
}

fn prepare(info: &Info, target: &str, texts: &[&str]) -> Result<Arguments, String> {
    if !(info.version_min..=info.version_cur).contains(&API_VERSION) {
        let (min, cur) = (info.version_min, info.version_cur);
        return Err(format!("expected a QEMU with plugin interface {API_VERSION}, got one with {min} to {cur}"));
    }
    if target != "x86_64" || info.system_emulation {
        return Err(format!("expected qemu-x86_64, which runs programs, got an emulator of {target} machines"));
    }
    Arguments::parse(texts.iter().copied())
}
