//! `layout VMLINUX KALLSYMS` prints the tracer's layout file for a kernel: a tool for trying the tracer by hand.

use kernel_naming::{GuestLayout, KernelSymbols, KernelTypes};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, vmlinux, kallsyms] = &arguments[..] else { return Err("expected VMLINUX KALLSYMS".into()) };
    let symbols_text = std::fs::read_to_string(kallsyms)?;
    let symbols = KernelSymbols::parse(symbols_text.as_bytes())?;
    let types = KernelTypes::from_elf(&std::fs::read(vmlinux)?)?;
    let mut layout = mtrace::kallsyms::layout_from_kallsyms(&symbols_text)?;
    layout.objects = Some(GuestLayout::derive(&types, &symbols)?.to_text());
    print!("{}", layout.to_text());
    Ok(())
}
