//! A disk of which the power can be cut: it notes all writes and syncs, and makes of a part of them what could be there
//! afterwards.

use std::io;
use std::sync::{Arc, Mutex};

use durable::Storage;
use redb::StorageBackend;

/// Written as a whole or not at all.
const SECTOR: usize = 512;

/// Which of the two places of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    Records,
    Pages,
}

#[derive(Clone, Debug)]
enum Step {
    Write(u64, Arc<[u8]>),
    Length(u64),
    Sync,
}

/// All steps of both places, in their order.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    steps: Arc<Mutex<Vec<(Which, Step)>>>,
    /// What was there before.
    before: [Vec<u8>; 2],
    /// Fails with this step and all after it.
    fails_at: Option<usize>,
}

#[derive(Debug)]
struct Place {
    disk: Disk,
    which: Which,
    now: Mutex<Vec<u8>>,
}

/// Numbers that look drawn.
#[derive(Clone, Debug)]
pub struct Draw(pub u64);

impl Draw {
    /// One below this.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ mixed >> 31) % bound
    }
}

impl Disk {
    pub fn with(before: [Vec<u8>; 2]) -> Disk {
        Disk { before, ..Disk::default() }
    }

    /// A disk that fails with a step, and does nothing any more.
    pub fn failing(step: usize) -> Disk {
        Disk { fails_at: Some(step), ..Disk::default() }
    }

    pub fn storage(&self) -> Storage {
        let place = |which: Which| {
            let now = Mutex::new(self.before[which as usize].clone());
            Box::new(Place { disk: self.clone(), which, now }) as Box<dyn StorageBackend>
        };
        Storage { records: place(Which::Records), pages: place(Which::Pages) }
    }

    /// Steps up to now.
    pub fn steps(&self) -> usize {
        self.steps.lock().unwrap().len()
    }

    /// What may be there if the power is cut after so many steps: all that was synced, and of the rest some, in parts and in any order.
    pub fn cut(&self, at: usize, draw: &mut Draw) -> [Vec<u8>; 2] {
        let steps = self.steps.lock().unwrap();
        [Which::Records, Which::Pages].map(|which| {
            let own: Vec<&Step> = steps[..at].iter().filter(|step| step.0 == which).map(|step| &step.1).collect();
            let synced = own.iter().rposition(|step| matches!(step, Step::Sync)).unwrap_or(0);
            let mut bytes = self.before[which as usize].clone();
            own[..synced].iter().for_each(|step| apply(&mut bytes, step, &mut |_| true));
            let mut rest = own[synced..].to_vec();
            let kept = [0, 1, 2, 3, 4][draw.below(5) as usize];
            if draw.below(2) == 0 {
                for index in (1..rest.len()).rev() {
                    rest.swap(index, draw.below(index as u64 + 1) as usize);
                }
            }
            for step in rest {
                // Of four, none or some or all are kept; of those kept, some are torn.
                if draw.below(4) < kept {
                    let is_torn = draw.below(3) == 0;
                    apply(&mut bytes, step, &mut |_| !is_torn || draw.below(2) == 0);
                }
            }
            bytes
        })
    }
}

fn apply(bytes: &mut Vec<u8>, step: &Step, is_kept: &mut dyn FnMut(usize) -> bool) {
    match step {
        Step::Sync => {}
        Step::Length(length) => bytes.resize(*length as usize, 0),
        Step::Write(offset, written) => {
            let offset = *offset as usize;
            for (sector, part) in written.chunks(SECTOR).enumerate() {
                let start = offset + sector * SECTOR;
                if is_kept(sector) {
                    if bytes.len() < start + part.len() {
                        bytes.resize(start + part.len(), 0);
                    }
                    bytes[start..start + part.len()].copy_from_slice(part);
                }
            }
        }
    }
}

impl Place {
    fn step(&self, step: Step) -> io::Result<()> {
        let mut steps = self.disk.steps.lock().unwrap();
        if self.disk.fails_at.is_some_and(|at| steps.len() >= at) {
            return Err(io::Error::other("the disk is gone"));
        }
        apply(&mut self.now.lock().unwrap(), &step, &mut |_| true);
        steps.push((self.which, step));
        Ok(())
    }
}

impl StorageBackend for Place {
    fn len(&self) -> io::Result<u64> {
        Ok(self.now.lock().unwrap().len() as u64)
    }

    fn read(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let now = self.now.lock().unwrap();
        let range = offset as usize..(offset as usize).saturating_add(length);
        now.get(range).map(<[u8]>::to_vec).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.step(Step::Length(length))
    }

    fn sync_data(&self, _: bool) -> io::Result<()> {
        self.step(Step::Sync)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.step(Step::Write(offset, bytes.into()))
    }
}
