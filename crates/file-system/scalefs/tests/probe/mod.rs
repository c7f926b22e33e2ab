//! Whether a program could load from an address, or store to it.

/// Asks the host whether a byte can be reached: the kernel does for us what the program's instruction would, and fails with EFAULT.
pub struct Probe {
    read: i32,
    write: i32,
}

impl Probe {
    /// With a pipe of its own.
    pub fn new() -> Probe {
        let mut ends = [0; 2];
        // SAFETY: room for two numbers.
        assert_eq!(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_NONBLOCK | libc::O_CLOEXEC) }, 0);
        Probe { read: ends[0], write: ends[1] }
    }

    /// The byte, if it can be loaded.
    pub fn load(&self, address: u64) -> Option<u8> {
        let mut byte = 0_u8;
        // SAFETY: the kernel checks the first address; the second is ours.
        unsafe {
            if libc::write(self.write, address as usize as *const libc::c_void, 1) != 1 {
                return None;
            }
            assert_eq!(libc::read(self.read, (&raw mut byte).cast(), 1), 1);
        }
        Some(byte)
    }

    /// Stores a byte; whether that is possible.
    pub fn store(&self, address: u64, mut byte: u8) -> bool {
        // SAFETY: as above.
        unsafe {
            assert_eq!(libc::write(self.write, (&raw const byte).cast(), 1), 1);
            let stored = libc::read(self.read, address as usize as *mut libc::c_void, 1) == 1;
            // What was refused is in the pipe still.
            assert_eq!(libc::read(self.read, (&raw mut byte).cast(), 1) == 1, !stored);
            stored
        }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        // SAFETY: opened in `new`.
        unsafe {
            libc::close(self.read);
            libc::close(self.write);
        }
    }
}
