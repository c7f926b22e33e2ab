//! What is loaded in a running program, from the list that it makes of itself (crate `library-runner`, modules.rs), and
//! names for its addresses.

use std::path::Path;

use crate::debug::SourceFiles;
use crate::file::CodeName;
use crate::function_names::plain_name;
use crate::module::Module;

/// A module in memory.
struct Mapped {
    start: u64,
    end: u64,
    bias: u64,
    module: Module,
}

/// The stack of a core's thread.
struct Stack {
    start: u64,
    end: u64,
    core: u64,
}

/// All modules of a program. The first one is the program itself, which runs the tests.
#[derive(Default)]
pub struct Loaded {
    modules: Vec<Mapped>,
    stacks: Vec<Stack>,
}

/// What lies at an address of a program's data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataName {
    /// The variable, or the kind of memory.
    pub object: String,
    /// The path of the innermost field, or an offset; empty for the whole.
    pub field: String,
}

impl Loaded {
    /// Reads the last whole list of a file that grows; `None` if there is none yet. Files that were read before are kept.
    #[must_use]
    pub fn read(self, listing: &str) -> Option<Loaded> {
        let end = listing.rfind("end\n").filter(|at| *at == 0 || listing.as_bytes()[at - 1] == b'\n')?;
        let before = &listing[..end];
        let list = before.rfind("\nend\n").map_or(before, |at| &before[at + 5..]);
        let mut known = self.modules;
        let mut loaded = Loaded::default();
        for line in list.lines() {
            let mut words = line.splitn(5, ' ');
            let kind = words.next();
            let mut number = || words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
            match (kind, number(), number(), number()) {
                (Some("module"), Some(start), Some(end), Some(bias)) => {
                    let path = words.next().unwrap_or_default();
                    let place = known.iter().position(|mapped| (mapped.start, mapped.end) == (start, end));
                    let module =
                        place.map_or_else(|| Module::open(Path::new(path)), |place| known.swap_remove(place).module);
                    loaded.modules.push(Mapped { start, end, bias, module });
                }
                (Some("stack"), Some(start), Some(end), Some(core)) => loaded.stacks.push(Stack { start, end, core }),
                _ => {}
            }
        }
        Some(loaded)
    }

    /// The module that an address lies in, and the module's own address for it.
    pub fn module_at(&mut self, address: u64) -> Option<(&mut Module, u64)> {
        let mapped = self.modules.iter_mut().find(|mapped| (mapped.start..mapped.end).contains(&address))?;
        Some((&mut mapped.module, address.wrapping_sub(mapped.bias)))
    }

    fn mapped_at(&self, address: u64) -> Option<(&Module, u64)> {
        let mapped = self.modules.iter().find(|mapped| (mapped.start..mapped.end).contains(&address))?;
        Some((&mapped.module, address.wrapping_sub(mapped.bias)))
    }

    /// The function that an instruction is in: by symbol, else `libc.so.6+0x8ac67`. See [`Module::public_function`].
    #[must_use]
    pub fn function(&self, address: u64) -> String {
        match self.mapped_at(address) {
            None => format!("{address:#x}"),
            Some((module, own)) => module.public_function(own),
        }
    }

    /// The functions that an instruction belongs to by debug information, the innermost first, as they are declared.
    #[must_use]
    pub fn functions(&self, address: u64) -> Vec<String> {
        let frames = self.mapped_at(address).map(|(module, own)| module.frames(own)).unwrap_or_default();
        frames.into_iter().map(|frame| frame.function).collect()
    }

    /// The frames of a call stack that an instruction stands for, inlined functions first; none for the program itself,
    /// which only runs the tests.
    #[must_use]
    pub fn frames(&self, address: u64) -> Vec<String> {
        if self.modules.first().is_some_and(|mapped| (mapped.start..mapped.end).contains(&address)) {
            return Vec::new();
        }
        let Some((module, own)) = self.mapped_at(address) else { return vec![format!("{address:#x}")] };
        let mut frames = module.frames(own);
        if let Some(call) = frames.iter().position(is_adapters_call) {
            frames.truncate(call);
            while frames.last().is_some_and(is_of_library) {
                frames.pop();
            }
            return frames.iter().map(|frame| plain_name(&frame.function) + &line(frame)).collect();
        }
        let outermost = frames.pop();
        let symbol = match module.function(own) {
            Some((name, offset)) => format!("{name}+{offset:#x}"),
            None => format!("{}+{own:#x}", module.name),
        };
        let inlined = frames.iter().map(|frame| plain_name(&frame.function) + &line(frame));
        let place = outermost.as_ref().map(line).unwrap_or_default();
        inlined.chain(std::iter::once(symbol + &place)).collect()
    }

    /// What the program's data at an address is called; `None` where no module and no stack is.
    pub fn data(&mut self, address: u64) -> Option<DataName> {
        let stack = self.stacks.iter().find(|stack| (stack.start..stack.end).contains(&address));
        if let Some(stack) = stack {
            let object = format!("stack or thread-local of core {}'s thread", stack.core);
            return Some(DataName { object, field: String::new() });
        }
        let (module, own) = self.module_at(address)?;
        let Some((name, offset)) = module.variable(own).map(|(name, offset)| (name.to_owned(), offset)) else {
            return Some(DataName { object: format!("{}+{own:#x}", module.name), field: String::new() });
        };
        let typed = module.type_of_variable(own - offset);
        let field = typed.map(|(unit, entry)| unit.field_at(entry, offset)).filter(|field| !field.is_empty());
        let place = || if offset == 0 { String::new() } else { format!("+{offset:#x}") };
        let whose = if module.is_own_variable(own) { String::new() } else { format!("{}!", module.name) };
        Some(DataName { object: whose + &plain_name(&name), field: field.unwrap_or_else(place) })
    }

    /// Where the program itself lies, which is loaded first.
    pub(crate) fn program_range(&self) -> std::ops::Range<u64> {
        self.modules.first().map_or(0..0, |mapped| mapped.start..mapped.end)
    }

    /// Where the variable begins that an address lies in.
    #[must_use]
    pub fn variable_start(&self, address: u64) -> Option<u64> {
        let (module, own) = self.mapped_at(address)?;
        module.variable(own).map(|(_, offset)| address - offset)
    }
}

/// Whether a frame is that of the header or the crate for adapters, which only hands a call on.
fn is_adapters_call(frame: &CodeName) -> bool {
    frame.function.contains("commutant_adapter::foreign::call") || frame.function.contains("commutant::call<")
}

fn is_of_library(frame: &CodeName) -> bool {
    frame.line.as_ref().is_none_or(|(path, _)| SourceFiles::is_of_library(path))
}

/// File and line of a frame, the file without what differs between machines: the folders of a registry or a toolchain.
fn line(frame: &CodeName) -> String {
    match &frame.line {
        Some((path, number)) if *number > 0 => format!(" {}:{number}", relative(path)),
        _ => String::new(),
    }
}

/// A source file's path from its project on. One of a package of the system, which its build calls `./nptl/x.c`, keeps that
/// mark: it is none of the user's.
fn relative(path: &str) -> String {
    let marks =
        [("/rustlib/src/rust/", 0), ("/rust/deps/", 0), ("/registry/src/", 1), ("/rustc/", 1), ("/include/c++/", 1)];
    for (mark, kept) in marks {
        if let Some(at) = path.find(mark) {
            let rest = &path[at + mark.len()..];
            let cut = if kept == 1 { rest.find('/').map_or(0, |slash| slash + 1) } else { 0 };
            return rest[cut..].to_owned();
        }
    }
    let mark = if path.starts_with("./") { "./" } else { "" };
    // The file with its folder tells projects' files apart well enough.
    let mut slashes = path.rmatch_indices('/').map(|(at, _)| at);
    let cut = slashes.nth(1).map_or(0, |at| at + 1);
    format!("{mark}{}", path[cut..].trim_start_matches("./"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_begin_at_their_project() {
        for (path, shown) in [
            ("/x/table/src/chash.c", "src/chash.c"),
            ("chash.c", "chash.c"),
            ("/x/.cargo/registry/src/index-1/dashmap-6.2.1/src/lib.rs", "dashmap-6.2.1/src/lib.rs"),
            ("/x/toolchains/x/lib/rustlib/src/rust/library/alloc/src/boxed.rs", "library/alloc/src/boxed.rs"),
            ("/rustc/0123/library/std/src/sync.rs", "library/std/src/sync.rs"),
            ("/usr/include/c++/12/bits/new_allocator.h", "bits/new_allocator.h"),
            ("/rust/deps/hashbrown-0.16.0/src/raw/mod.rs", "hashbrown-0.16.0/src/raw/mod.rs"),
            ("./nptl/./nptl/pthread_mutex_lock.c", "./nptl/pthread_mutex_lock.c"),
            ("./string/../sysdeps/x86_64/multiarch/memmove.S", "./multiarch/memmove.S"),
        ] {
            assert_eq!(relative(path), shown);
        }
    }

    #[test]
    fn only_whole_lists_count() {
        assert!(Loaded::default().read("").is_none());
        assert!(Loaded::default().read("module 1000 2000 1000 /x\n").is_none());
        let loaded = Loaded::default().read("module 1000 2000 1000 /none/libx.so\nend\nmodule 10").unwrap();
        assert_eq!(loaded.function(0x1234), "libx.so+0x234");
        assert_eq!(loaded.function(0x5000), "0x5000");
    }
}
