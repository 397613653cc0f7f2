//! Signals: a mapped file cut short by another process (SIGBUS), and the user's Ctrl-C.
//!
//! Files being written are registered here, so that a process that dies by signal leaves no litter.
//! The handler may only call async-signal-safe functions, hence the fixed table of C strings.

use std::ffi::{CString, c_char};
use std::path::Path;
use std::sync::atomic::{AtomicPtr, Ordering};

/// As many as a model directory may have files, and some.
const SLOTS: usize = 1 << 14;
static UNFINISHED: [AtomicPtr<c_char>; SLOTS] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; SLOTS];

/// Keeps a path registered as unfinished until it is dropped.
#[derive(Debug)]
pub(crate) struct Unfinished(Option<usize>);

impl Unfinished {
    /// Registers a path. With all slots taken it is simply not removed on a signal.
    pub(crate) fn register(path: &Path) -> Unfinished {
        let Ok(text) = CString::new(path.as_os_str().as_encoded_bytes()) else {
            return Unfinished(None);
        };
        let raw = text.into_raw();
        let free = UNFINISHED.iter().position(|slot| {
            let empty = std::ptr::null_mut();
            slot.compare_exchange(empty, raw, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        });
        if free.is_none() {
            // SAFETY: the pointer came from `into_raw` just above and was stored nowhere.
            drop(unsafe { CString::from_raw(raw) });
        }
        Unfinished(free)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(slot) = self.0 {
            let raw = UNFINISHED[slot].swap(std::ptr::null_mut(), Ordering::AcqRel);
            if !raw.is_null() {
                // SAFETY: only `register` fills slots, with pointers from `into_raw`, and the swap
                // took this one out, so that nobody else frees it.
                drop(unsafe { CString::from_raw(raw) });
            }
        }
    }
}

/// Makes the process remove unfinished files and exit cleanly: with code 4 and a message when a
/// mapped file becomes shorter while it is read, with 130 on Ctrl-C and 143 on termination.
/// For programs; a library leaves signals alone.
pub fn exit_cleanly_on_signals() {
    #[cfg(unix)]
    for signal in [libc::SIGBUS, libc::SIGINT, libc::SIGTERM] {
        let handler = on_signal as extern "C" fn(libc::c_int);
        // SAFETY: the handler calls async-signal-safe functions only and never returns.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
}

#[cfg(unix)]
extern "C" fn on_signal(signal: libc::c_int) {
    const SHRUNK: &[u8] =
        b"error: a file became shorter while it was being read; nothing was written\n";
    for slot in &UNFINISHED {
        let path = slot.load(Ordering::Acquire);
        if !path.is_null() {
            // SAFETY: a registered pointer is a valid C string; `unlink` is async-signal-safe. A
            // slot freed by another thread in this very moment is the one race left, in a process
            // that is about to end.
            unsafe { libc::unlink(path) };
        }
    }
    // Folders, once they are empty: inner ones were registered later.
    for slot in UNFINISHED.iter().rev() {
        let path = slot.load(Ordering::Acquire);
        if !path.is_null() {
            // SAFETY: as above; `rmdir` is async-signal-safe, and does nothing to a file.
            unsafe { libc::rmdir(path) };
        }
    }
    let code = if signal == libc::SIGBUS {
        // SAFETY: `write` is async-signal-safe; pointer and length are those of a static array.
        unsafe { libc::write(2, SHRUNK.as_ptr().cast(), SHRUNK.len()) };
        4
    } else {
        super::last_words::say();
        128 + signal
    };
    // SAFETY: `_exit` is async-signal-safe and ends the process.
    unsafe { libc::_exit(code) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_taken_and_given_back() {
        for _ in 0..3 {
            let held: Vec<_> = (0..SLOTS + 2)
                .map(|i| Unfinished::register(Path::new(&format!("/x{i}"))))
                .collect();
            assert!(held.iter().filter(|u| u.0.is_none()).count() >= 2);
        }
        let again = Unfinished::register(Path::new("/y"));
        assert!(again.0.is_some());
        // A path with a NUL can't exist.
        assert!(Unfinished::register(Path::new("/y\0z")).0.is_none());
    }
}
