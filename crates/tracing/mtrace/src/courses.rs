//! Courses: what each core did to a shared line in a window, in order and with all accesses between counted.
//!
//! A picture says which bytes were touched; whether a line is away when a core comes back to it depends on what came before
//! what, and how long ago. Where an access stood among all accesses of its core's call is a matter of the window, so courses
//! are kept with it and have no numbers.

use crate::record::{Access, AccessKind, SharedLine};

/// What an access of a course does, numbered as Python has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum CourseKind {
    /// Reads its bytes.
    Read = 0,
    /// Writes them.
    Write = 1,
    /// Takes the line as a write would, and changes nothing.
    PrefetchForWrite = 2,
    /// Reads and writes them by one instruction.
    Update = 3,
}

impl From<AccessKind> for CourseKind {
    fn from(kind: AccessKind) -> CourseKind {
        match kind {
            AccessKind::Read => CourseKind::Read,
            AccessKind::Write => CourseKind::Write,
            AccessKind::PrefetchForWrite => CourseKind::PrefetchForWrite,
        }
    }
}

/// One access of a course.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CourseAccess {
    /// How many of the core's accesses came before it ([`crate::record::Moments`]).
    pub position: u32,
    /// The core.
    pub core: u8,
    /// What it does.
    pub kind: CourseKind,
    /// First byte, within the line.
    pub offset: u8,
    /// Number of bytes.
    pub size_bytes: u8,
}

/// What the cores did to a line: core by core, each core's in order. An access that the trace has several times of is there
/// at its first and at its last.
pub fn course(line: &SharedLine) -> Vec<CourseAccess> {
    let mut made: Vec<(u32, &Access)> = Vec::with_capacity(line.accesses.len());
    for (access, moments) in line.accesses.iter().zip(&line.moments) {
        made.push((moments.first, access));
        if moments.last != moments.first {
            made.push((moments.last, access));
        }
    }
    made.sort_by_key(|&(position, access)| (access.core, position));
    let mut course: Vec<CourseAccess> = Vec::with_capacity(made.len());
    let mut last: Option<(u32, &Access)> = None;
    for (position, access) in made {
        let is_second_half = last.is_some_and(|(before, other)| {
            position == before + 1
                && access.kind == AccessKind::Write
                && *access == (Access { kind: AccessKind::Write, stack: access.stack, ..*other })
                && other.kind == AccessKind::Read
        });
        last = Some((position, access));
        match course.last_mut() {
            Some(read) if is_second_half => read.kind = CourseKind::Update,
            _ => {
                let Access { core, offset, size_bytes, kind, .. } = *access;
                course.push(CourseAccess { position, core, kind: kind.into(), offset, size_bytes });
            }
        }
    }
    course
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Moments;

    #[test]
    fn accesses_are_in_order_and_an_update_is_one() {
        use AccessKind::{PrefetchForWrite, Read, Write};
        let made = [
            (1, 7, 8, Write, 3, 3),
            (0, 5, 0, Read, 10, 10),
            (0, 5, 0, Write, 11, 11),
            (0, 6, 16, Read, 2, 40),
            (0, 8, 0, Read, 50, 50),
            (0, 9, 0, Write, 51, 51),
            (0, 8, 0, PrefetchForWrite, 60, 60),
        ];
        let access = |&(core, instruction, offset, kind, ..): &(u8, u64, u8, AccessKind, u32, u32)| Access {
            instruction,
            stack: 0,
            core,
            offset,
            size_bytes: 8,
            kind,
        };
        let line = SharedLine {
            address: 0,
            physical: None,
            captures: Vec::new(),
            accesses: made.iter().map(access).collect(),
            moments: made.iter().map(|one| Moments { first: one.4, last: one.5 }).collect(),
        };
        let told: Vec<_> = course(&line).iter().map(|one| (one.core, one.position, one.offset, one.kind)).collect();
        let expected = [
            (0, 2, 16, CourseKind::Read),
            (0, 10, 0, CourseKind::Update),
            (0, 40, 16, CourseKind::Read),
            (0, 50, 0, CourseKind::Read),
            (0, 51, 0, CourseKind::Write),
            (0, 60, 0, CourseKind::PrefetchForWrite),
            (1, 3, 8, CourseKind::Write),
        ];
        assert_eq!(told, expected);
    }
}
