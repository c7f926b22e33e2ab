//! Names addresses in a guest's RAM file:
//! `name_addresses VMLINUX KALLSYMS RAM-FILE [ADDRESS[:SIZE]]...`; without addresses it prints the layout.

use std::process::ExitCode;
use std::sync::atomic::AtomicU64;

use kernel_naming::{GuestLayout, GuestMemory, KernelSymbols, KernelTypes, Namer, WindowView};

fn run(arguments: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let [vmlinux, kallsyms, ram, addresses @ ..] = arguments else {
        return Err("expected VMLINUX KALLSYMS RAM-FILE [ADDRESS[:SIZE]]...".into());
    };
    let types = KernelTypes::from_elf(&std::fs::read(vmlinux)?)?;
    let symbols = KernelSymbols::parse(&std::fs::read(kallsyms)?)?;
    let layout = GuestLayout::derive(&types, &symbols)?;
    if addresses.is_empty() {
        print!("{}", layout.to_text());
        return Ok(());
    }
    let words: Vec<AtomicU64> = std::fs::read(ram)?
        .chunks_exact(8)
        .map(|word| AtomicU64::new(u64::from_ne_bytes(std::array::from_fn(|index| word[index]))))
        .collect();
    let mut view = WindowView::new(GuestMemory::new(&words, u64::MAX), &layout);
    if !view.holds_kernel() {
        return Err(format!("expected {ram} to hold the kernel that {vmlinux} and {kallsyms} describe").into());
    }
    let namer = Namer::new(types, symbols);
    for text in addresses {
        let (address, size) = text.split_once(':').unwrap_or((text, "1"));
        let address = u64::from_str_radix(address.trim_start_matches("0x"), 16)?;
        let capture = view.capture(address);
        let name = namer.name(&capture, address, size.parse()?);
        println!("{address:#x} {:?} {} | {} | {}", capture.capture_kind(), name.object, name.field, name.full_field);
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("name_addresses: {error}");
            ExitCode::from(2)
        }
    }
}
