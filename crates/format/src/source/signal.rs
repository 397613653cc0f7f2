//! Signals: a mapped file cut short by another process (SIGBUS), and the wish that the process ends.
//!
//! Files being written are registered here, so that a process that dies by signal leaves no litter.
//! While files are put in the place of others, a signal waits until that is done. The handler may
//! only call async-signal-safe functions, hence the fixed table of C strings.

use std::ffi::{CString, c_char};
use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32};

/// As many as a model directory may have files, and some.
const SLOTS: usize = 1 << 14;
static UNFINISHED: [AtomicPtr<c_char>; SLOTS] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; SLOTS];

/// How many [`Deferred`] there are, or that the process is ending.
static STATE: AtomicU32 = AtomicU32::new(0);
const ENDING: u32 = 1 << 31;
/// The signal that came last, which a [`Deferred`] looks at in its end.
static CAME: AtomicI32 = AtomicI32::new(0);

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
            slot.compare_exchange(std::ptr::null_mut(), raw, SeqCst, SeqCst).is_ok()
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
        let Some(slot) = self.0 else { return };
        let raw = UNFINISHED[slot].swap(std::ptr::null_mut(), SeqCst);
        // Whoever ends the process says so before it looks at the slots. If it has not said so by
        // now, it will find this one empty; if it has, it may be reading the text, which then stays.
        if !raw.is_null() && STATE.load(SeqCst) & ENDING == 0 {
            // SAFETY: only `register` fills slots, with pointers from `into_raw`; the swap took this
            // one out, so that nobody else frees it, and nobody reads it, as said above.
            drop(unsafe { CString::from_raw(raw) });
        }
    }
}

/// As long as it lives, signals that would end the process wait; it ends when the last one is
/// dropped. For the few moments in which files take the places of others.
#[derive(Debug)]
pub struct Deferred(());

impl Deferred {
    /// Begins to hold signals back.
    pub fn begin() -> Deferred {
        loop {
            let state = STATE.load(SeqCst);
            if state & ENDING != 0 {
                // Another thread ends the process, and removes what this one would rename.
                std::thread::park();
            } else if STATE.compare_exchange(state, state + 1, SeqCst, SeqCst).is_ok() {
                return Deferred(());
            }
        }
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        if STATE.fetch_sub(1, SeqCst) == 1 && CAME.load(SeqCst) != 0 && may_end() {
            end(CAME.load(SeqCst));
        }
    }
}

/// Says that the process ends, unless files are taking the places of others or somebody else has
/// said so. A signal is noted before this is asked, and looked for when the last of them is done, so
/// that either side sees the other.
fn may_end() -> bool {
    STATE.compare_exchange(0, ENDING, SeqCst, SeqCst).is_ok()
}

/// Makes the process remove unfinished files and exit cleanly: with code 4 and a message when a
/// mapped file becomes shorter while it is read, with 128 and the signal's number on Ctrl-C, on
/// termination, and when the terminal goes away. What the caller chose to ignore (`nohup`) stays
/// ignored. Reaching the limit of a file's size becomes an error of writing.
/// For programs; a library leaves signals alone.
pub fn exit_cleanly_on_signals() {
    #[cfg(unix)]
    {
        install(libc::SIGXFSZ, libc::SIG_IGN);
        let handler = on_signal as extern "C" fn(libc::c_int);
        for signal in [libc::SIGBUS, libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            install(signal, handler as libc::sighandler_t);
        }
    }
}

#[cfg(unix)]
fn install(signal: libc::c_int, handler: libc::sighandler_t) {
    // SAFETY: a `sigaction` of zeros is one, and is filled by the system. The handler calls
    // async-signal-safe functions only; where it returns, calls of the system go on.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let known = libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0;
        if known && action.sa_sigaction == libc::SIG_IGN {
            return;
        }
        action = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_RESTART;
        libc::sigfillset(&raw mut action.sa_mask);
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
    }
}

#[cfg(unix)]
extern "C" fn on_signal(signal: libc::c_int) {
    if signal == libc::SIGBUS {
        // There is no going back to what raised it. Those who rename files do not read mapped ones,
        // so that it is another thread that is waited for.
        while !may_end() {
            // SAFETY: `poll` is async-signal-safe, and looks at no file when it is given none.
            unsafe { libc::poll(std::ptr::null_mut(), 0, 1) };
        }
        end(signal);
    }
    CAME.store(signal, SeqCst);
    if may_end() {
        end(signal);
    }
}

/// Removes what is not finished and ends the process. [`may_end`] has said yes.
#[cfg(unix)]
fn end(signal: libc::c_int) -> ! {
    const SHRUNK: &[u8] =
        b"error: a file became shorter while it was being read; nothing was written\n";
    for slot in &UNFINISHED {
        let path = slot.load(SeqCst);
        if !path.is_null() {
            // SAFETY: a registered pointer is a valid C string, which nobody frees once the process
            // is ending; `unlink` is async-signal-safe.
            unsafe { libc::unlink(path) };
        }
    }
    // Folders, once they are empty: inner ones were registered later.
    for slot in UNFINISHED.iter().rev() {
        let path = slot.load(SeqCst);
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

/// No signal is ever noted elsewhere.
#[cfg(not(unix))]
fn end(signal: i32) -> ! {
    std::process::exit(128 + signal)
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

    #[test]
    fn those_who_defer_signals_are_counted() {
        let both = (Deferred::begin(), Deferred::begin());
        assert!(STATE.load(SeqCst) >= 2 && !may_end());
        drop(both);
    }
}
