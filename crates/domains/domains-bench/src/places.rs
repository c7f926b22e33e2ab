//! Two domains of this process, each a thread: a server, and a client with the program. They share a pool file below /dev/shm, and
//! nothing else but the stage at which they are.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use domains::{Domain, Limits, PoolLines, Techniques};
use messages::{DomainNumber, Transport};
use pool::file::{Pool, create, path_of};
use pool::{Coherent, Memory};
use transports::{Plan, Rings};

use crate::clock::{now_ns, stay_on};

/// Memory of a coherent machine, as Hare's was: rings and lines are written and read, and nothing is flushed.
pub type OfMachine = Coherent<Arc<Pool>>;

/// A domain of the measured file system.
pub type Host = Domain<Rings<OfMachine>>;

const RING_LINES: [usize; 4] = [16, 256, 256, 256];
/// Looks after which a line that is not whole is damage.
const PATIENCE: u32 = 1 << 30;
/// Looks in vain after which who has a processor for itself offers it to others: they may want it.
const SPINS: u32 = 1000;

/// Who has which processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processors {
    /// Each domain has one.
    Own,
    /// Both share one, and hand it over when they wait.
    Shared,
}

/// The stage that both have come to.
pub struct Stage(AtomicUsize);

const FAILED: usize = usize::MAX;

impl Stage {
    /// Says that a stage has been reached.
    pub fn reach(&self, stage: usize) {
        self.0.store(stage, Ordering::Release);
    }

    /// Says that it is over for both.
    pub fn fail(&self) {
        self.reach(FAILED);
    }

    /// Whether a stage has been reached, or the other has failed.
    pub fn is_reached(&self, stage: usize) -> bool {
        self.0.load(Ordering::Acquire) >= stage
    }
}

impl Processors {
    fn of(self, domain: usize) -> usize {
        if self == Processors::Own { domain } else { 1 }
    }

    /// Lets the other go on after a number of looks in vain: at once where both share a processor.
    pub fn relax(self, looks: u32) {
        if self == Processors::Own && looks < SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
    }

    /// Serves until a stage is reached.
    pub fn serve_until<T: Transport>(self, domain: &Domain<T>, stage: &Stage, number: usize) {
        let mut looks = 0;
        while !stage.is_reached(number) {
            if domain.serve() {
                looks = 0;
            } else {
                self.relax(looks);
                looks += 1;
            }
        }
    }
}

/// Where rings and lines of two domains lie in a pool.
fn plan(pool: &Pool) -> Plan {
    Plan { at: pool.first_free(), domain_count: 2, ring_lines: RING_LINES, salt: 1, patience: PATIENCE }
}

/// The rings of a domain over its end of the pool.
pub fn rings<M: Memory + Clone>(pool: &Arc<Pool>, memory: &M) -> Result<Rings<M>, String> {
    Rings::new(memory, plan(pool), DomainNumber(pool.domain() as u16)).map_err(|error| error.to_string())
}

/// A domain over its end of the pool.
pub fn host(pool: &Arc<Pool>, techniques: Techniques) -> Result<Host, String> {
    let memory = Coherent::new(Arc::clone(pool));
    let lines = PoolLines::new(memory.clone(), plan(pool).at + plan(pool).bytes(), 2);
    let lines = lines.map_err(|fault| fault.to_string())?;
    let domain = Domain::new(rings(pool, &memory)?, Rc::new(lines), now_ns, Limits::default());
    domain.use_techniques(techniques);
    Ok(domain)
}

/// Runs the server, which is domain 0, and the client, each in a thread.
pub fn in_threads<A: Send, B: Send>(
    processors: Processors,
    server: impl FnOnce(&Arc<Pool>, &Stage) -> Result<A, String> + Send,
    client: impl FnOnce(&Arc<Pool>, &Stage) -> Result<B, String> + Send,
) -> Result<(A, B), String> {
    let path = path_of(&format!("domains-bench-pool-{}", std::process::id()));
    let joined = create(&path, 4 << 20, 2)
        .and_then(|()| Ok([Pool::join(&path, 0)?, Pool::join(&path, 1)?]))
        .map_err(|error| error.to_string());
    // Both have mapped it, or it is of no use.
    let _ = std::fs::remove_file(&path);
    let [first, second] = joined?.map(Arc::new);
    let stage = &Stage(AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let server = scope.spawn(move || {
            stay_on(processors.of(0));
            server(&first, stage).inspect_err(|_| stage.fail())
        });
        let client = scope.spawn(move || {
            stay_on(processors.of(1));
            client(&second, stage).inspect_err(|_| stage.fail())
        });
        let (server, client) = (server.join(), client.join());
        match (server, client) {
            (Ok(server), Ok(client)) => Ok((server?, client?)),
            _ => Err("a domain's thread has panicked".into()),
        }
    })
}
