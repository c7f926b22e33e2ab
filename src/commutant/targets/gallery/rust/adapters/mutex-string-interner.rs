//! string-interner behind a lock.
use std::sync::Mutex;

use commutant_adapter::{Arguments, Errno, Handle};
use string_interner::{DefaultBackend, StringInterner, Symbol, symbol::SymbolU32};

type Names = Mutex<StringInterner<DefaultBackend>>;

fn handle(symbol: SymbolU32) -> Handle {
    Handle { sort: "Symbol", number: symbol.to_usize() as i64 }
}

fn intern(names: &Names, arguments: Arguments) -> Handle {
    handle(names.lock().unwrap().get_or_intern(arguments.text(0)))
}

fn find(names: &Names, arguments: Arguments) -> Result<Handle, Errno> {
    names.lock().unwrap().get(arguments.text(0)).map(handle).ok_or(Errno::ENOENT)
}

fn resolve(names: &Names, arguments: Arguments) -> String {
    let symbol = SymbolU32::try_from_usize(arguments.number(0) as usize).expect("a symbol");
    names.lock().unwrap().resolve(symbol).expect("a text").to_owned()
}

commutant_adapter::library! { Names: || Mutex::new(StringInterner::new());
"intern(name)" => intern, "find(name)" => find, "resolve(symbol)" => resolve }
