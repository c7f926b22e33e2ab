//! Installation: arguments are checked before QEMU starts; a mistake is one line on standard error.

use std::ffi::{c_char, c_int};
use std::path::Path;

use kernel_naming::{KernelSymbols, KernelTypes};
use qemu_plugin::abi::{Info, PluginId};
use qemu_plugin::current;
use qemu_plugin::install::install;
use qemu_plugin::ram::Ram;

use crate::arguments::Arguments;
use crate::{kernel, program};

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
    let start = |info: &Info, texts: &[&str]| start(id, info, Arguments::parse(texts.iter().copied())?);
    // SAFETY: as this function demands.
    unsafe { install("commutant lock recorder", info, argc, argv, start) }
}

fn start(id: PluginId, info: &Info, arguments: Arguments) -> Result<(), String> {
    match (&arguments.kernel, info.system_emulation) {
        (None, false) => program::install(id, arguments)?,
        (Some(files), true) => {
            if info.max_vcpus > kernel::CPU_LIMIT as c_int {
                return Err(format!("expected at most {} virtual CPUs, got {}", kernel::CPU_LIMIT, info.max_vcpus));
            }
            current::prepare()?;
            let symbols = KernelSymbols::parse(&read(&files.kallsyms)?).map_err(|error| error.to_string())?;
            let types = KernelTypes::parse(&read(&files.btf)?).map_err(|error| error.to_string())?;
            let functions = kernel::Functions::find(&symbols)?;
            let names = kernel::KernelNames::new(types, symbols, Ram::open(&files.ram)?, u64::MAX)?;
            let recorder = kernel::Recorder::new(names, arguments.options, arguments.filters_stack);
            kernel::install(id, recorder, functions, arguments.out);
        }
        (None, true) => return Err("expected kallsyms=PATH, btf=PATH and ram=PATH for a machine, got none".to_owned()),
        (Some(_), false) => return Err("expected no kallsyms, btf and ram for a program, got them".to_owned()),
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("'{}': {error}", path.display()))
}
