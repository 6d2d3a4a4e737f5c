//! The folder of sockets, which only its owner can enter.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::os;

/// The folders in which this user's processes may publish, the preferred one first: `$XDG_RUNTIME_DIR/offlock`, or
/// `/run/user/1000/offlock`, with the user's id, where the variable is missing, as in a job of cron; and
/// `/tmp/offlock-1000`.
fn folders() -> impl Iterator<Item = PathBuf> {
    let user = os::user_id();
    folders_of(user, std::env::var_os("XDG_RUNTIME_DIR").map_or_else(|| usual_runtime(user), PathBuf::from))
}

/// What `$XDG_RUNTIME_DIR` usually is.
fn usual_runtime(user: u32) -> PathBuf {
    format!("/run/user/{user}").into()
}

fn folders_of(user: u32, runtime: PathBuf) -> impl Iterator<Item = PathBuf> {
    let runtime = Some(runtime).filter(|folder| folder.is_absolute() && folder.is_dir());
    let shared = PathBuf::from(format!("/tmp/offlock-{user}"));
    runtime.map(|folder| folder.join("offlock")).into_iter().chain([shared])
}

/// Makes the folder, if it does not exist, and checks that no other user can enter it.
fn ensure_private(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => check_private(folder, os::user_id()),
    }
}

/// Checks that only this user can enter the folder.
fn check_private(folder: &Path, user: u32) -> io::Result<()> {
    let found = fs::symlink_metadata(folder)?;
    if found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0 {
        return Ok(());
    }
    let problem = format!("{} is not a folder that only this user can enter", folder.display());
    Err(io::Error::other(problem))
}

fn socket_in(folder: &Path, pid: u32) -> PathBuf {
    folder.join(format!("{pid}.sock"))
}

/// Where this process is to publish its socket, in place of one that an earlier process of this number left.
pub(super) fn own_socket() -> io::Result<PathBuf> {
    let mut first = None;
    for folder in folders() {
        match ensure_private(&folder) {
            Ok(()) => return Ok(socket_in(&folder, std::process::id())),
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
}

/// The sockets of a process, in the folders that only its user can enter: root looks into those of others, too.
pub(super) fn sockets_of(pid: u32) -> impl Iterator<Item = PathBuf> {
    let (own, of_process) =
        (os::user_id(), fs::metadata(format!("/proc/{pid}")).map(|process| process.uid()));
    let user = of_process.ok().filter(|_| own == 0).unwrap_or(own);
    let of_other = (user != own).then(|| folders_of(user, usual_runtime(user)));
    let own = (user == own).then(folders);
    let all = of_other.into_iter().flatten().chain(own.into_iter().flatten());
    let private = all.filter(move |folder| check_private(folder, user).is_ok());
    private.map(move |folder| socket_in(&folder, pid))
}

/// Whether a process publishes, or has published before it was killed: as [`sockets_of`].
pub fn publishes(pid: u32) -> bool {
    sockets_of(pid).any(|socket| socket.exists())
}

/// Connects to a socket. One that a process has left that was killed is removed, and `NotFound`.
pub(super) fn connect_to(path: &Path) -> io::Result<UnixStream> {
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            let _ = fs::remove_file(path);
            Err(io::ErrorKind::NotFound.into())
        }
        connected => connected,
    }
}

/// The ids of this user's processes that publish, in order. A process that was killed is among them only if another one
/// has its number by now.
pub fn published() -> Vec<u32> {
    let entries = folders()
        .filter(|folder| check_private(folder, os::user_id()).is_ok())
        .flat_map(fs::read_dir)
        .flatten()
        .flatten();
    // One that is not seen may be in another container, with a number of its own there.
    let publishes =
        |pid: u32, socket: &Path| Path::new(&format!("/proc/{pid}")).exists() || connect_to(socket).is_ok();
    let pid = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.strip_suffix(".sock")?.parse().ok()?;
        publishes(pid, &entry.path()).then_some(pid)
    };
    let mut pids: Vec<u32> = entries.filter_map(pid).collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_process_that_was_killed_is_not_published() {
        let folder = folders().last().expect("one that all share");
        ensure_private(&folder).expect("ours");
        let (nobody, path) = (u32::MAX, socket_in(&folder, u32::MAX));
        let elsewhere = UnixListener::bind(&path).expect("a new socket");
        assert!(published().contains(&nobody), "a process in another container");
        drop(elsewhere);
        assert!(!published().contains(&nobody));
        assert!(!path.exists(), "it is removed");
    }

    #[test]
    fn a_folder_that_others_can_enter_is_refused() {
        let folder = std::env::temp_dir().join(format!("offlock-private-{}", std::process::id()));
        ensure_private(&folder).expect("it is made");
        ensure_private(&folder).expect("it is there");
        let mut permissions = fs::metadata(&folder).expect("there").permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
        fs::set_permissions(&folder, permissions).expect("ours");
        assert!(ensure_private(&folder).expect_err("too open").to_string().contains("only this user"));
        fs::remove_dir(&folder).expect("ours");
        let target = std::env::temp_dir();
        std::os::unix::fs::symlink(target, &folder).expect("writable");
        assert!(ensure_private(&folder).is_err(), "a link is refused");
        fs::remove_file(&folder).expect("ours");
    }
}
