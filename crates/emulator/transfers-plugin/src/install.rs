//! Installation: the argument is checked before QEMU starts; a mistake is one line on standard error.

use std::ffi::{c_char, c_int};
use std::path::PathBuf;

use qemu_plugin::abi::{Info, PluginId};
use qemu_plugin::install::install;

use crate::callbacks;

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
    let start = |info: &Info, texts: &[&str]| {
        if info.system_emulation {
            return Err("expected a QEMU for programs, got one for machines".to_owned());
        }
        let out = match texts {
            [text] => text.strip_prefix("out=").filter(|path| !path.is_empty()),
            _ => None,
        };
        let out = out.ok_or_else(|| format!("expected out=PATH and nothing else, got '{}'", texts.join(",")))?;
        callbacks::install(id, PathBuf::from(out));
        Ok(())
    };
    // SAFETY: as this function demands.
    unsafe { install("commutant transfer counter", info, argc, argv, start) }
}
