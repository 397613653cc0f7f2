//! One sync for all that was written to a file system.

use std::io;
use std::path::Path;

/// Syncs the file system that a folder is in; false where the system can't, or would not tell what
/// could not be written.
#[cfg(target_os = "linux")]
pub(super) fn sync(folder: &Path) -> io::Result<bool> {
    use rustix::io::Errno;
    let release = rustix::system::uname();
    if !tells_failures(&release.release().to_string_lossy()) {
        return Ok(false);
    }
    match rustix::fs::syncfs(std::fs::File::open(folder)?) {
        Ok(()) => Ok(true),
        Err(Errno::NOSYS | Errno::PERM) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn sync(_: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Kernels do so since 5.8.
#[cfg(target_os = "linux")]
fn tells_failures(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let (major, minor) = (numbers.next(), numbers.next());
    matches!((major, minor), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (5, 8))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn old_kernels_are_known_by_their_release() {
        for release in ["5.8.0", "5.10.0-8-amd64", "6.1", "6.18.5+"] {
            assert!(super::tells_failures(release), "{release}");
        }
        for release in ["4.18.0-553.el8.x86_64", "5.7.19", "5", "", "x.y"] {
            assert!(!super::tells_failures(release), "{release}");
        }
    }
}
