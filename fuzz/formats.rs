//! Each native reader of what others wrote, given bytes that libFuzzer chooses: an answer or an error, never a panic, a
//! hang or more memory than [`scripts/fuzz.py`](../scripts/fuzz.py) allows. The first byte chooses the reader.
#![no_main]

use std::io::Write;

use kernel_naming::{GuestLayout, KernelSymbols, KernelTypes};
use libfuzzer_sys::fuzz_target;
use mtrace::blocks::BlockCapture;
use mtrace::decode::TraceDecoder;
use mtrace::layout::Layout;
use mtrace::record::Event;
use program_naming::ProgramFile;
use wire::case::Case;
use wire::plan::Plan;

/// A planted fault: the trace reader's caller believes every header.
const PLANTED: &str = "formats: a trace has a header";

fn batches(bytes: &[u8]) {
    let Ok(plan) = Plan::decode(bytes) else { return };
    for (number, _) in plan.windows().take(64) {
        let _ = plan.test(number);
    }
}

fn results(bytes: &[u8]) {
    let Ok(windows) = wire::results::decode(bytes) else { return };
    for window in &windows {
        let _ = window.to_json();
    }
}

fn cases(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(case) = Case::parse(text) {
        for index in 0..case.setup().len() {
            let _ = case.setup_text(index);
        }
    }
}

/// A trace with the right header and checksums: else nothing after them would ever be reached.
fn whole_trace(bytes: &[u8]) -> Vec<u8> {
    let Some((mode, mut rest)) = bytes.split_first() else { return Vec::new() };
    let mut trace = b"\x89MTRACE\n".to_vec();
    for word in [2, u32::from(mode & 1), u32::from(mode >> 1), 0, 0, 0] {
        trace.extend_from_slice(&word.to_le_bytes());
    }
    while let [kind, low, high, behind @ ..] = rest {
        let length = behind.len().min(usize::from(u16::from_le_bytes([*low, *high])));
        let (body, next) = behind.split_at(length);
        let mut record = u32::from(*kind).to_le_bytes().to_vec();
        record.extend_from_slice(&(length as u32).to_le_bytes());
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&record);
        checksum.update(body);
        trace.extend_from_slice(&record);
        trace.extend_from_slice(&checksum.finalize().to_le_bytes());
        trace.extend_from_slice(body);
        rest = next;
    }
    trace
}

fn traces(bytes: &[u8], believes: bool) {
    let mut decoder = match TraceDecoder::new(bytes) {
        Ok(decoder) => decoder,
        Err(error) if believes => panic!("planted: {error}"),
        Err(_) => return,
    };
    while let Ok(Some(event)) = decoder.next_event() {
        if let Event::Window(window) = event {
            for access in window.lines.iter().flat_map(|line| &line.accesses) {
                assert!(decoder.stack(access.stack).count() < bytes.len());
            }
        }
    }
}

fn programs(bytes: &[u8]) {
    thread_local! {
        static FILE: std::path::PathBuf = std::env::temp_dir().join(format!("commutant-formats-{}", std::process::id()));
    }
    FILE.with(|path| {
        let written = std::fs::File::create(path).and_then(|mut file| file.write_all(bytes));
        assert!(written.is_ok(), "a temporary folder that can be written");
        if let Ok(file) = ProgramFile::open(path, false) {
            for address in (0..0x400).step_by(7) {
                let _ = file.code(address);
                let _ = file.variable(address);
            }
        }
        let _ = std::fs::remove_file(path);
    });
}

fn read(bytes: &[u8], believes: bool) {
    let Some((reader, bytes)) = bytes.split_first() else { return };
    let text = || std::str::from_utf8(bytes);
    match reader % 10 {
        0 => batches(bytes),
        1 => results(bytes),
        2 => cases(bytes),
        3 => traces(bytes, believes),
        4 => traces(&whole_trace(bytes), believes),
        5 => drop(text().map(Layout::parse)),
        6 => drop(KernelTypes::parse(bytes)),
        7 => drop(KernelSymbols::parse(bytes)),
        8 => {
            let _ = text().map(GuestLayout::parse);
            let _ = BlockCapture::from_bytes(bytes);
        }
        _ => programs(bytes),
    }
}

fuzz_target!(|bytes: &[u8]| read(bytes, std::env::var("COMMUTANT_PLANTED_FAULT").as_deref() == Ok(PLANTED)));
