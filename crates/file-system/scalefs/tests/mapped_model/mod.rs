//! A file and two mappings of it, as a value that takes steps: see the specification of `memory_histories.rs`.

use std::collections::BTreeSet;

use history::State;
use scalefs::Protection;

use crate::{Call, IN_A_PAGE, Mapping, Outcome, PAGE, PAGES};

/// A call with what it returned, or a part of a cut.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Call(Call, Outcome),
    /// A private page that may be stored to becomes the process's own.
    Copy(usize),
    /// What was stored to a page of a mapping is forgotten.
    Forget(Mapping, usize),
    /// The file gets this size; the cut has a number.
    Resize(u64, usize),
    /// What was cut off goes from a page of a mapping.
    Gone(Mapping, usize, usize),
}

/// A page that is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Area {
    rights: Protection,
    /// The process's own page, of a private mapping.
    copy: Option<u8>,
    /// What was there when the file was cut, until that goes.
    cut_off: Option<u8>,
}

/// The state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mapped {
    size_bytes: u64,
    /// The byte of each page that is looked at.
    file: [u8; PAGES as usize],
    areas: [[Option<Area>; PAGES as usize]; 2],
    cuts: BTreeSet<usize>,
}

impl Default for Mapped {
    /// As `prepare` leaves it.
    fn default() -> Mapped {
        let area = Some(Area { rights: Protection::ReadWrite, copy: None, cut_off: None });
        let mut areas = [[area; PAGES as usize]; 2];
        areas[Mapping::Private as usize][0].as_mut().expect("mapped").copy = Some(3);
        Mapped { size_bytes: 2 * PAGE, file: [1, 2, 0], areas, cuts: BTreeSet::new() }
    }
}

impl Mapped {
    fn is_in_file(&self, page: usize) -> bool {
        page as u64 * PAGE < self.size_bytes
    }

    fn resize(&mut self, size_bytes: u64) {
        for page in 0..PAGES as usize {
            let is_kept = (page as u64 * PAGE) < size_bytes;
            if self.is_in_file(page) && !is_kept {
                for area in self.areas.iter_mut().filter_map(|areas| areas[page].as_mut()) {
                    area.cut_off = Some(area.copy.take().unwrap_or(self.file[page]));
                }
            }
            if !(self.is_in_file(page) && is_kept) {
                self.file[page] = 0;
            }
        }
        self.size_bytes = size_bytes;
    }

    fn load(&self, mapping: Mapping, page: usize, outcome: &Outcome) -> bool {
        let Some(area) = self.areas[mapping as usize][page].filter(|area| area.rights != Protection::None) else {
            return *outcome == Err("SIGSEGV".to_string());
        };
        let is_now = match area.copy {
            Some(copy) => *outcome == Ok(Some(copy.into())),
            None if self.is_in_file(page) => *outcome == Ok(Some(self.file[page].into())),
            None => *outcome == Err("SIGBUS".to_string()),
        };
        is_now || area.cut_off.is_some_and(|byte| *outcome == Ok(Some(byte.into())))
    }

    fn store(&mut self, mapping: Mapping, page: usize, byte: u8, outcome: &Outcome) -> bool {
        let is_in_file = self.is_in_file(page);
        let area = self.areas[mapping as usize][page].as_mut();
        let Some(area) = area.filter(|area| area.rights == Protection::ReadWrite) else {
            return *outcome == Err("SIGSEGV".to_string());
        };
        match (outcome, mapping) {
            (Ok(_), Mapping::Shared) if is_in_file => self.file[page] = byte,
            (Ok(_), Mapping::Private) if is_in_file || area.copy.is_some() => area.copy = Some(byte),
            // It goes with the page.
            (Ok(_), _) if area.cut_off.is_some() => area.cut_off = Some(byte),
            (Ok(_), _) => return false,
            (Err(error), _) => return error == "SIGBUS" && !is_in_file && area.copy.is_none(),
        }
        true
    }

    fn call(&mut self, call: Call, outcome: &Outcome) -> bool {
        let done = |is_mapped: bool| *outcome == if is_mapped { Ok(None) } else { Err("ENOMEM".to_string()) };
        match call {
            Call::Load(mapping, page) => self.load(mapping, page as usize, outcome),
            Call::Store(mapping, page, byte) => self.store(mapping, page as usize, byte, outcome),
            Call::Map(mapping, page) => {
                let area = Area { rights: Protection::ReadWrite, copy: None, cut_off: None };
                self.areas[mapping as usize][page as usize] = Some(area);
                done(true)
            }
            Call::Unmap(mapping, page) => {
                self.areas[mapping as usize][page as usize] = None;
                done(true)
            }
            Call::Protect(mapping, page, rights) => {
                let area = self.areas[mapping as usize][page as usize].as_mut();
                done(area.map(|area| area.rights = rights).is_some())
            }
            Call::Discard(mapping, page) => done(self.areas[mapping as usize][page as usize].is_some()),
            Call::ReadAt(page) => {
                let byte = self.is_in_file(page as usize).then(|| self.file[page as usize].into());
                *outcome == Ok(byte)
            }
            Call::WriteAt(page, byte) => {
                let end = page * PAGE + IN_A_PAGE + 1;
                if end > self.size_bytes {
                    self.resize(end);
                }
                self.file[page as usize] = byte;
                done(true)
            }
            Call::Size => *outcome == Ok(Some(self.size_bytes)),
            Call::Resize(_) => unreachable!("a step of its own"),
        }
    }
}

impl State for Mapped {
    type Step = Step;

    fn take(&mut self, _: usize, step: &Step) -> bool {
        match step {
            Step::Call(call, outcome) => self.call(*call, outcome),
            Step::Copy(page) => {
                let is_in_file = self.is_in_file(*page);
                let area = self.areas[Mapping::Private as usize][*page].as_mut();
                if let Some(area) = area.filter(|area| is_in_file && area.rights == Protection::ReadWrite) {
                    area.copy = Some(area.copy.unwrap_or(self.file[*page]));
                }
                true
            }
            Step::Forget(mapping, page) => {
                if let Some(area) = &mut self.areas[*mapping as usize][*page] {
                    (area.copy, area.cut_off) = (None, None);
                }
                true
            }
            Step::Resize(size_bytes, cut) => {
                self.resize(*size_bytes);
                self.cuts.insert(*cut)
            }
            Step::Gone(mapping, page, cut) => {
                if let Some(area) = &mut self.areas[*mapping as usize][*page] {
                    area.cut_off = None;
                }
                self.cuts.contains(cut)
            }
        }
    }
}
