//! Who calls: for each user with his groups a process of the instance, so that the file system checks his rights itself.
//!
//! The kernel names user and first group with each request. The other groups are looked up when they can matter, in the
//! caller's `/proc` entry; who calls from another space of process numbers has none here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use fuser::Request;
use scalefs::{Credentials, Errno, FileSystem, MAX_GROUPS, Process};

/// Callers that are remembered at once; more than that begin again.
const REMEMBERED_CALLERS: usize = 256;

/// A process of the instance, ended when this is dropped.
pub(super) struct Caller {
    files: FileSystem,
    process: Option<Process>,
}

impl Caller {
    fn begin(files: &FileSystem, credentials: Credentials) -> Result<Caller, Errno> {
        let lease = files.begin().map_err(|_| Errno::EIO)?;
        let process = lease.begin_process(credentials)?;
        // The kernel takes the mask off before it asks.
        process.context().set_umask(0);
        Ok(Caller { files: files.clone(), process: Some(process) })
    }

    pub(super) fn process(&self) -> &Process {
        self.process.as_ref().expect("there until it is dropped")
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        if let (Some(process), Ok(lease)) = (self.process.take(), self.files.begin()) {
            lease.end_process(process);
        }
    }
}

/// All who have called lately.
pub(super) struct Callers {
    files: FileSystem,
    superuser: Arc<Caller>,
    others: Mutex<HashMap<Credentials, Arc<Caller>>>,
}

impl Callers {
    pub(super) fn new(files: &FileSystem) -> Result<Callers, Errno> {
        let superuser = Arc::new(Caller::begin(files, Credentials::SUPERUSER)?);
        Ok(Callers { files: files.clone(), superuser, others: Mutex::default() })
    }

    /// The kernel itself, for what it has checked or writes on its own.
    pub(super) fn kernel(&self) -> &Caller {
        &self.superuser
    }

    /// Who has made a request.
    pub(super) fn of(&self, request: &Request) -> Result<Arc<Caller>, Errno> {
        let (user, group) = (request.uid(), request.gid());
        if (user, group) == (0, 0) {
            return Ok(self.superuser.clone());
        }
        // Groups give the superuser nothing.
        let groups = if user == 0 { Vec::new() } else { groups_of(request.pid()) };
        let credentials = Credentials::new(user, group, &groups).ok_or(Errno::EIO)?;
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(caller) = others.get(&credentials) {
            return Ok(caller.clone());
        }
        if others.len() >= REMEMBERED_CALLERS {
            others.clear();
        }
        let caller = Arc::new(Caller::begin(&self.files, credentials)?);
        others.insert(credentials, caller.clone());
        Ok(caller)
    }
}

/// The groups of a thread beside its first; none if it cannot be seen.
fn groups_of(thread: u32) -> Vec<u32> {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    groups_in(&status)
}

fn groups_in(status: &str) -> Vec<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Groups:")).unwrap_or_default();
    line.split_whitespace().filter_map(|group| group.parse().ok()).take(MAX_GROUPS).collect()
}

#[cfg(test)]
mod tests {
    use super::groups_in;

    #[test]
    fn groups_stand_in_their_line() {
        assert_eq!(groups_in("Name:\tcat\nGid:\t7\t7\t7\t7\nGroups:\t4 24 1000 \nNgid:\t0\n"), [4, 24, 1000]);
        assert_eq!(groups_in("Groups:\t \n"), [] as [u32; 0]);
        assert_eq!(groups_in(""), [] as [u32; 0]);
    }

    #[test]
    fn as_many_groups_count_as_credentials_hold() {
        let many: Vec<String> = (0..100).map(|group| group.to_string()).collect();
        assert_eq!(groups_in(&format!("Groups:\t{}\n", many.join(" "))).len(), scalefs::MAX_GROUPS);
    }
}
