//! lasso: an interner over dashmap.
use commutant_adapter::{Arguments, Errno, Handle};
use lasso::{Key, Spur, ThreadedRodeo};

fn handle(symbol: Spur) -> Handle {
    Handle { sort: "Symbol", number: symbol.into_usize() as i64 }
}

fn intern(names: &ThreadedRodeo, arguments: Arguments) -> Handle {
    handle(names.get_or_intern(arguments.text(0)))
}

fn find(names: &ThreadedRodeo, arguments: Arguments) -> Result<Handle, Errno> {
    names.get(arguments.text(0)).map(handle).ok_or(Errno::ENOENT)
}

fn resolve(names: &ThreadedRodeo, arguments: Arguments) -> String {
    let symbol = Spur::try_from_usize(arguments.number(0) as usize).expect("a symbol");
    names.resolve(&symbol).to_owned()
}

commutant_adapter::library! { ThreadedRodeo: ThreadedRodeo::new;
"intern(name)" => intern, "find(name)" => find, "resolve(symbol)" => resolve }
