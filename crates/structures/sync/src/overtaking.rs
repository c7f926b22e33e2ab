//! Who runs next where one thread is overtaken by the others at one of its accesses, and perhaps gets past them again at
//! one of theirs. Only built under `cfg(shuttle)`.

use shuttle::scheduler::TaskId;

/// An access to an atomic: its address, and whether it may change it.
pub(crate) type Access = (usize, bool);

/// Who makes this many accesses without letting others run tries something again and again that another has to end
/// first. From then on all run in turn.
const LONGEST_ROW: usize = 20_000;
/// After this many accesses threads are taken to go on forever.
const MOST_ACCESSES: usize = 300_000;

/// How far an execution has come in which one thread is overtaken.
pub(crate) struct Overtaking {
    /// The overtaken thread's place among those that meet.
    place: usize,
    /// It makes this many accesses before the others' turn.
    own_before: usize,
    /// They make this many accesses together before it goes on.
    others_before: usize,
    /// Those that have met.
    threads: Vec<TaskId>,
    has_begun: bool,
    /// All of them but one, in the order in which they shall run.
    others: Vec<TaskId>,
    running: Option<TaskId>,
    /// Whether the overtaken thread could run when somebody was chosen last: not if it has ended.
    can_slow_run: bool,
    /// How many of the others have waited since its last access.
    waited: usize,
    /// Accesses since another ran.
    in_a_row: usize,
    in_turns: bool,
    /// What the overtaken thread has accessed since all met, and what the others have.
    accesses: [Vec<Access>; 2],
}

impl Overtaking {
    /// The thread of this place makes `own_before` accesses before it is overtaken, and the others `others_before`
    /// before it goes on.
    pub(crate) fn new(place: usize, [own_before, others_before]: [usize; 2]) -> Overtaking {
        Overtaking {
            place,
            own_before,
            others_before,
            threads: Vec::new(),
            has_begun: false,
            others: Vec::new(),
            running: None,
            can_slow_run: false,
            waited: 0,
            in_a_row: 0,
            in_turns: false,
            accesses: Default::default(),
        }
    }

    /// One of this many threads has met the others.
    pub(crate) fn meet(&mut self, thread: TaskId, count: usize) {
        self.threads.push(thread);
        self.threads.sort();
        self.has_begun = self.threads.len() == count;
        let slow = self.slow();
        self.others = self.threads.iter().filter(|thread| Some(**thread) != slow).copied().collect();
    }

    /// How many threads have met, and what was accessed by the one that is overtaken, and by the others.
    pub(crate) fn had(&mut self) -> (usize, [Vec<Access>; 2]) {
        (self.threads.len(), std::mem::take(&mut self.accesses))
    }

    /// Before each access: whether others shall run; nothing if this goes on forever.
    pub(crate) fn is_switch(&mut self, access: Access) -> Option<bool> {
        let Some(running) = self.running.filter(|running| self.has_begun && self.threads.contains(running)) else {
            return Some(false);
        };
        let is_slow = Some(running) == self.slow();
        if is_slow {
            self.waited = 0;
        }
        let accesses = &mut self.accesses[usize::from(!is_slow)];
        accesses.push(access);
        let is_endless = accesses.len() > MOST_ACCESSES;
        self.in_a_row += 1;
        self.in_turns |= self.in_a_row > LONGEST_ROW;
        (!is_endless).then(|| self.in_turns || (self.can_slow_run && is_slow != self.is_turn_of_slow()))
    }

    /// Whether the overtaken thread goes on: before the others' turn, and after it.
    fn is_turn_of_slow(&self) -> bool {
        let [slow, others] = &self.accesses;
        slow.len() <= self.own_before || others.len() > self.others_before
    }

    /// The thread that is overtaken, once all have met.
    fn slow(&self) -> Option<TaskId> {
        self.threads.get(self.place).copied().filter(|_| self.has_begun)
    }

    /// Which of those that can runs next.
    pub(crate) fn next(&mut self, able: &[TaskId], current: Option<TaskId>, is_yielding: bool) -> TaskId {
        let goes_on = current.filter(|current| able.contains(current) && !is_yielding);
        let in_turn =
            || goes_on.or(able.iter().find(|thread| current.is_some_and(|current| **thread > current)).copied());
        let next = match self.slow() {
            Some(slow) if !self.in_turns => {
                let is_first = self.accesses.iter().all(Vec::is_empty);
                let waits = is_yielding && current == Some(slow) && !is_first;
                let waiting = self.others.iter().position(|other| is_yielding && current == Some(*other) && !is_first);
                if let Some(waiting) = waiting {
                    // It waits, or has tried: the others try before it does so again.
                    let other = self.others.remove(waiting);
                    self.others.push(other);
                    self.waited += 1;
                }
                let all_wait = self.waited >= self.others.iter().filter(|other| able.contains(other)).count();
                let other = self.others.iter().find(|other| able.contains(other)).copied();
                let slow = Some(slow).filter(|slow| able.contains(slow));
                match self.is_turn_of_slow() {
                    true if is_first => slow.or(other),
                    true if waits => other.or(slow),
                    true => goes_on.or(slow).or(other),
                    false if waiting.is_some() && all_wait => slow.or(other),
                    false => goes_on.or(other).or(slow),
                }
            }
            _ => in_turn(),
        };
        let next = next.unwrap_or(able[0]);
        if self.running != Some(next) {
            self.in_a_row = 0;
        }
        self.can_slow_run = self.slow().is_some_and(|slow| able.contains(&slow));
        self.running = Some(next);
        next
    }
}
