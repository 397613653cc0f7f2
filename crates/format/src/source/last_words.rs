//! What a program says when a signal ends it: what is kept, and how to go on.

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// What the handler prints. It is never freed, because the handler may read it at any time; a process
/// has few of them.
#[derive(Debug)]
struct Text {
    before: String,
    /// Behind the number, if there is one.
    after: Option<String>,
}

static TEXT: AtomicPtr<Text> = AtomicPtr::new(std::ptr::null_mut());
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// As long as it is there, a text is printed to standard error when Ctrl-C or another signal ends the
/// process, after [`exit_cleanly_on_signals`](super::exit_cleanly_on_signals). For programs.
#[derive(Debug)]
pub struct LastWords {
    earlier: *mut Text,
}

impl LastWords {
    /// `{}` in the text stands for the number of [`LastWords::count`].
    pub fn new(text: &str) -> LastWords {
        let (before, after) = match text.split_once("{}") {
            Some((before, after)) => (before.to_owned(), Some(after.to_owned())),
            None => (text.to_owned(), None),
        };
        NUMBER.store(0, Ordering::Release);
        let text = Box::into_raw(Box::new(Text { before, after }));
        LastWords { earlier: TEXT.swap(text, Ordering::AcqRel) }
    }

    /// The number that is said.
    pub fn count(&self, number: u64) {
        NUMBER.store(number, Ordering::Release);
    }
}

impl Drop for LastWords {
    fn drop(&mut self) {
        TEXT.store(self.earlier, Ordering::Release);
    }
}

/// Says them; for the handler, so that it calls nothing but `write`.
#[cfg(unix)]
pub(super) fn say() {
    // SAFETY: a pointer that was stored is that of a text that is never freed.
    let Some(text) = (unsafe { TEXT.load(Ordering::Acquire).as_ref() }) else { return };
    let write = |bytes: &[u8]| {
        // SAFETY: `write` is async-signal-safe; pointer and length are those of a slice.
        unsafe { libc::write(2, bytes.as_ptr().cast(), bytes.len()) };
    };
    write(text.before.as_bytes());
    if let Some(after) = &text.after {
        let mut room = [0; MOST_DIGITS];
        write(grouped(NUMBER.load(Ordering::Acquire), &mut room));
        write(after.as_bytes());
    }
}

/// Twenty digits and their commas.
const MOST_DIGITS: usize = 26;

/// A number with a comma between groups of three digits, without memory of its own.
fn grouped(mut number: u64, room: &mut [u8; MOST_DIGITS]) -> &[u8] {
    let mut start = MOST_DIGITS;
    for digits in 0.. {
        if digits > 0 && number == 0 {
            break;
        }
        if digits > 0 && digits % 3 == 0 {
            start -= 1;
            room[start] = b',';
        }
        start -= 1;
        room[start] = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
    }
    &room[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1200, "1,200"),
            (1_000_000, "1,000,000"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(grouped(number, &mut [0; MOST_DIGITS]), text.as_bytes());
        }
    }

    #[test]
    fn the_words_of_before_come_back() {
        let current = || TEXT.load(Ordering::Acquire);
        let outer = LastWords::new("outer");
        let text = current();
        drop(LastWords::new("inner {}"));
        assert_eq!(current(), text);
        drop(outer);
        assert!(current().is_null());
    }
}
