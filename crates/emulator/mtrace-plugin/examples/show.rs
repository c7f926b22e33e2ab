//! `show TRACE [VMLINUX KALLSYMS]` prints a trace, with names if a kernel is given: a tool for trying the tracer by hand.

use std::fs::File;
use std::io::BufReader;

use kernel_naming::{KernelSymbols, KernelTypes, Namer, ObjectCapture};
use mtrace::decode::TraceDecoder;
use mtrace::record::{AccessKind, Event, Window};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let (trace, namer) = match &arguments[..] {
        [_, trace] => (trace, None),
        [_, trace, vmlinux, kallsyms] => {
            let symbols = KernelSymbols::parse(&std::fs::read(kallsyms)?)?;
            (trace, Some(Namer::new(KernelTypes::from_elf(&std::fs::read(vmlinux)?)?, symbols)))
        }
        _ => return Err("expected TRACE [VMLINUX KALLSYMS]".into()),
    };
    let mut decoder = TraceDecoder::new(BufReader::new(File::open(trace)?))?;
    println!("{:?}", decoder.header());
    while let Some(event) = decoder.next_event()? {
        match event {
            Event::Window(window) => show(&window, &decoder, namer.as_ref())?,
            other => println!("{other:?}"),
        }
    }
    Ok(())
}

fn show<R: std::io::Read>(
    window: &Window,
    decoder: &TraceDecoder<R>,
    namer: Option<&Namer>,
) -> Result<(), Box<dyn std::error::Error>> {
    let Window { sequence, lost_accesses, counted_accesses, logged_accesses: _, ignored_lines, lines } = window;
    println!("window {sequence}: accesses {counted_accesses:?}, ignored {ignored_lines:?}, lost {lost_accesses}");
    let function = |address: u64| match namer.and_then(|namer| namer.function(address)) {
        Some(function) => function.to_string(),
        None => format!("{address:#x}"),
    };
    for line in lines {
        println!("  line {:#x} physical {:x?}", line.address, line.physical);
        for access in &line.accesses {
            let address = line.address + u64::from(access.offset);
            let captures = line.captures.iter().filter_map(|bytes| bytes.as_slice().try_into().ok());
            let captures = captures.map(ObjectCapture::from_bytes).collect::<Result<Vec<_>, _>>()?;
            let nearest = captures.iter().filter(|capture| capture.address <= address).max_by_key(|c| c.address);
            let name = match (namer, nearest.or(captures.first())) {
                (Some(namer), Some(capture)) => {
                    let name = namer.name(capture, address, u64::from(access.size_bytes));
                    format!("{}.{} ({})", name.object, name.field, name.full_field)
                }
                _ => "?".to_owned(),
            };
            let direction = match access.kind {
                AccessKind::Read => "read ",
                AccessKind::Write => "write",
                AccessKind::PrefetchForWrite => "prefetchw",
            };
            let stack: Vec<String> = decoder.stack(access.stack).map(function).collect();
            println!(
                "    core {} {direction} {:2}+{} {name}: {} < {}",
                access.core,
                access.offset,
                access.size_bytes,
                function(access.instruction),
                stack.join(" < ")
            );
        }
    }
    Ok(())
}
