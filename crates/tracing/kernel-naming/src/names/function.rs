//! Names of code addresses.

use std::fmt;

use super::Namer;
use crate::symbols::without_compiler_suffix;

/// A function, and where in it an address lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionName {
    /// The symbol as listed, compiler suffixes included (`d_walk.part.0`).
    pub symbol: String,
    /// Without them (`d_walk`): what stays the same over builds.
    pub identity: String,
    /// Bytes from the symbol.
    pub offset: u64,
    /// The module, for code of one.
    pub module: Option<String>,
}

impl fmt::Display for FunctionName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}+{:#x}", self.symbol, self.offset)?;
        match &self.module {
            Some(module) => write!(formatter, " [{module}]"),
            None => Ok(()),
        }
    }
}

impl Namer {
    /// The function that holds a code address; `None` for user code and for kernel addresses without a function.
    #[must_use]
    pub fn function(&self, address: u64) -> Option<FunctionName> {
        let symbol = self.symbols.function_at(address)?;
        Some(FunctionName {
            symbol: symbol.name.to_owned(),
            identity: without_compiler_suffix(symbol.name).to_owned(),
            offset: address - symbol.address,
            module: symbol.module.map(str::to_owned),
        })
    }

    /// The caller that a return address belongs to. A call may be the last instruction of a function; the return address is
    /// then the next function's first byte, so the byte before it decides.
    #[must_use]
    pub fn caller(&self, return_address: u64) -> Option<FunctionName> {
        let mut name = self.function(return_address.checked_sub(1)?)?;
        name.offset += 1;
        Some(name)
    }
}
