//! Installation: arguments, layout and files are checked before QEMU starts; a mistake is one line on standard error.

use std::ffi::{c_char, c_int};
use std::fs::{File, OpenOptions};
use std::path::Path;

use kernel_naming::GuestLayout;
use mtrace::blocks::BlockCapture;
use mtrace::encode;
use mtrace::layout::{Layout, MAX_LAYOUT_BYTES};
use mtrace::record::{Header, MAX_CORES, Mode};

use crate::arguments::Arguments;
use crate::callbacks;
use crate::objects::{CAPTURE_BYTES, Objects};
use crate::output::Output;
use crate::tracer::{self, Setup};
use qemu_plugin::abi::{Info, PluginId};
use qemu_plugin::current;
use qemu_plugin::install::install;
use qemu_plugin::ram::Ram;
use qemu_plugin::registers::Registers;

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
        tracer::install(prepare(info, texts)?);
        callbacks::register(id);
        Ok(())
    };
    // SAFETY: as this function demands.
    unsafe { install("commutant tracer", info, argc, argv, start) }
}

fn prepare(info: &Info, texts: &[&str]) -> Result<Setup, String> {
    let mode = if info.system_emulation { Mode::System } else { Mode::User };
    let arguments = Arguments::parse(texts.iter().copied())?;
    if let Some(expected) = arguments.mode.filter(|&expected| expected != mode) {
        return Err(format!("expected a QEMU for mode {expected:?}, got one for mode {mode:?}").to_lowercase());
    }
    if mode == Mode::System && info.max_vcpus > MAX_CORES as c_int {
        return Err(format!("expected at most {MAX_CORES} virtual CPUs, got maxcpus={}", info.max_vcpus));
    }
    let layout = match &arguments.layout {
        Some(path) => read_layout(path)?,
        None if mode == Mode::User || !arguments.record => Layout::default(),
        None => return Err("expected layout=PATH in system mode, got no such argument".to_owned()),
    };
    if mode == Mode::System {
        current::prepare()?;
    }
    let objects = match &arguments.ram {
        Some(path) if mode == Mode::System && arguments.record => {
            let text = layout.objects.as_deref().ok_or("expected a layout file with a part [objects] for ram=PATH")?;
            let guest = GuestLayout::parse(text).map_err(|error| format!("layout file, part [objects]: {error}"))?;
            Some(Objects::new(Ram::open(path)?, arguments.ram_below_4g_bytes, guest))
        }
        _ => None,
    };
    let file = open_output(&arguments.out)?;
    let mut output = Output::new(file);
    let capture_bytes = match mode {
        Mode::User if arguments.record => BlockCapture::SIZE_BYTES,
        _ if objects.is_some() => CAPTURE_BYTES,
        _ => 0,
    };
    output.buffer.extend_from_slice(&encode::header(&Header { mode, capture_bytes: capture_bytes as u32 }));
    output.write();
    Ok(Setup {
        mode,
        layout,
        user_window: arguments.user_base..arguments.user_base + arguments.user_bytes,
        record: arguments.record,
        rules: arguments.rules,
        neighbours: arguments.neighbours,
        registers: arguments.record.then(|| Registers::find(mode == Mode::System)).transpose()?,
        output,
        objects,
    })
}

fn read_layout(path: &Path) -> Result<Layout, String> {
    let shown = path.display();
    let length = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    if length > MAX_LAYOUT_BYTES as u64 {
        return Err(format!("expected a layout file of at most {MAX_LAYOUT_BYTES} bytes at '{shown}', got {length}"));
    }
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("expected a layout file at '{shown}': {error}"))?;
    Layout::parse(&text).map_err(|error| format!("'{shown}': {error}"))
}

fn open_output(path: &Path) -> Result<File, String> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
        .map_err(|error| format!("cannot open the trace '{}' for writing: {error}", path.display()))
}
