//! Creating and reading trace files safely.
//!
//! A trace may lie in a folder that other users can write to. So a created file is readable by its owner
//! only, is new, and is never reached through a link that another user may have put there. A file that the
//! user names is replaced as a whole: the new file takes its name by a rename, and programs that have the old
//! file open keep it.

use std::ffi::OsString;
use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(unix)]
use crate::os;

/// Traces of every version begin with this.
const NAME: &[u8] = b"offlock";

/// The number of names that are tried if the first ones are taken.
const MOST_NAMES: u32 = 1_000;

/// Creates a file, which must not exist; a link with its name counts as a file.
///
/// # Errors
///
/// Errors of the system, such as `AlreadyExists`.
pub fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Creates a file beside `path`, with another extension and a name that is free: `app.offlock`,
/// `app-2.offlock`, …
///
/// # Errors
///
/// Errors of the system; `AlreadyExists` if 1,000 such names are taken.
pub fn create_beside(path: &Path, extension: &str) -> io::Result<(File, PathBuf)> {
    create_first(names_beside(path, extension))
}

/// The name that [`create_beside`] would choose now.
pub fn free_name_beside(path: &Path, extension: &str) -> PathBuf {
    let is_free = |name: &PathBuf| fs::symlink_metadata(name).is_err();
    names_beside(path, extension).find(is_free).unwrap_or_else(|| path.with_extension(extension))
}

/// Creates the first of these files that does not exist.
fn create_first(names: impl Iterator<Item = PathBuf>) -> io::Result<(File, PathBuf)> {
    for name in names {
        match create_new(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created.map(|file| (file, name)),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{MOST_NAMES} files with such names exist")))
}

fn names_beside(path: &Path, extension: &str) -> impl Iterator<Item = PathBuf> {
    numbered(&path.with_extension(extension))
}

/// A path, followed by paths with a number at the end of the stem: `app.offlock`, `app-2.offlock`, …
pub(super) fn numbered(path: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let path = path.to_owned();
    (1..=MOST_NAMES).map(move |number| if number == 1 { path.clone() } else { with_number(&path, number) })
}

fn with_number(path: &Path, number: u32) -> PathBuf {
    let mut name = OsString::from(path.file_stem().unwrap_or_default());
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// What exists under a name that the user has given.
enum Named {
    /// Nothing, or a file that may be replaced.
    File,
    /// A device or a pipe.
    Stream,
}

/// Links to files are refused, because another user may have made them. Writing through a link is allowed
/// only to a target that cannot lose data, such as `/dev/stdout`.
fn named(path: &Path, may_be: impl Fn(&FileType) -> bool) -> io::Result<Named> {
    let own = match fs::symlink_metadata(path) {
        Ok(own) => own.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Named::File),
        Err(error) => return Err(error),
    };
    if own.is_file() {
        return Ok(Named::File);
    }
    if fs::metadata(path).is_ok_and(|target| may_be(&target.file_type())) {
        return Ok(Named::Stream);
    }
    let what = if own.is_symlink() { "it is a symbolic link" } else { "it is not a regular file" };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{what}, which offlock does not write to")))
}

#[cfg(unix)]
fn is_device(kind: &FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_char_device(kind)
}

#[cfg(not(unix))]
fn is_device(_: &FileType) -> bool {
    false
}

#[cfg(unix)]
fn is_device_or_pipe(kind: &FileType) -> bool {
    is_device(kind) || std::os::unix::fs::FileTypeExt::is_fifo(kind)
}

#[cfg(not(unix))]
fn is_device_or_pipe(_: &FileType) -> bool {
    false
}

/// Creates a file with a unique name beside `path`.
fn temporary(path: &Path) -> io::Result<(File, PathBuf)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let own =
        path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it names no file"))?;
    let name = |_| {
        let mut name = OsString::from(".");
        name.push(own);
        name.push(format!(".{}.{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        path.with_file_name(name)
    };
    create_first((0..MOST_NAMES).map(name))
}

/// Checks that a file that the user has named can be created or replaced.
///
/// # Errors
///
/// `InvalidInput` if there is a link or another kind of file; errors of the system.
pub fn check_named(path: &Path) -> io::Result<()> {
    named(path, is_device).map(drop)
}

/// Creates a file that the user has named, in place of an existing one.
///
/// # Errors
///
/// As [`check_named`], and errors of creating the file.
pub fn replace(path: &Path) -> io::Result<File> {
    if let Named::Stream = named(path, is_device)? {
        return OpenOptions::new().write(true).open(path);
    }
    let (file, name) = temporary(path)?;
    fs::rename(&name, path).inspect_err(|_| drop(fs::remove_file(&name)))?;
    Ok(file)
}

/// Writes a file that the user has named. An existing file stays as it is until the new one is complete.
///
/// # Errors
///
/// As [`replace`], and errors of `content`.
pub fn write_named(path: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    if let Named::Stream = named(path, is_device_or_pipe)? {
        return write_to(OpenOptions::new().write(true).open(path)?, content);
    }
    let (file, name) = temporary(path)?;
    let written = write_to(file, content).and_then(|()| fs::rename(&name, path));
    written.inspect_err(|_| drop(fs::remove_file(&name)))
}

/// Writes a file that the user has not named (see [`create_beside`]), and returns its path.
///
/// # Errors
///
/// As [`create_beside`], and errors of `content`. The file is removed then.
pub fn write_beside(
    path: &Path,
    extension: &str,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<PathBuf> {
    let (file, name) = create_beside(path, extension)?;
    match write_to(file, content) {
        Ok(()) => Ok(name),
        Err(error) => {
            let _ = fs::remove_file(&name);
            Err(error)
        }
    }
}

/// Writes `content` through a buffer of 64 KB.
///
/// # Errors
///
/// Errors of `out` and of `content`.
pub fn write_to(out: impl Write, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    content(&mut out)?;
    out.flush()
}

/// Opens one of the program's own files for appending.
pub(super) fn append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK | libc::O_NOFOLLOW);
    options.open(path)
}

/// Opens a regular file. Everything else is refused, without blocking on a pipe.
fn open(path: &Path, flags: i32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK | flags);
    #[cfg(not(unix))]
    let _ = flags;
    let file = options.open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
}

/// Reads a trace: a regular file.
///
/// # Errors
///
/// Errors of the system; `InvalidInput` if it is not a regular file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_from(open(path, 0)?)
}

/// Reads a trace from a stream. Of what does not begin like one, only the beginning, because it may be of any size.
///
/// # Errors
///
/// Errors of the stream.
pub fn read_from(mut stream: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.by_ref().take(4096).read_to_end(&mut bytes)?;
    if bytes.starts_with(NAME) {
        stream.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Reads the beginning of a file that this user owns and that is not a link.
#[cfg(unix)]
pub(super) fn read_own(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    use std::os::unix::fs::MetadataExt;
    let file = open(path, libc::O_NOFOLLOW)?;
    if file.metadata()?.uid() != os::user_id() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads the beginning of a file.
#[cfg(not(unix))]
pub(super) fn read_own(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path, 0)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("offlock-files-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("writable");
            Self(path)
        }

        fn with_victim(name: &str) -> (Self, PathBuf, PathBuf) {
            let folder = Self::new(name);
            let (victim, link) = (folder.0.join("victim"), folder.0.join("link.offlock"));
            fs::write(&victim, "precious").expect("writable");
            symlink(&victim, &link).expect("writable");
            (folder, victim, link)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("there").permissions().mode() & 0o777
    }

    #[test]
    fn a_link_is_never_followed_to_a_file() {
        let (_folder, victim, link) = Folder::with_victim("link");
        assert_eq!(create_new(&link).expect_err("taken").kind(), io::ErrorKind::AlreadyExists);
        assert!(replace(&link).expect_err("a link").to_string().contains("symbolic link"));
        assert!(write_named(&link, |out| out.write_all(b"x")).is_err());
        assert!(check_named(&link).is_err());
        assert!(read_own(&link, 100).is_err());
        assert_eq!(fs::read_to_string(&victim).expect("there"), "precious");
        assert_eq!(read(&link).expect("reading through a link harms nobody"), b"precious");
    }

    #[test]
    fn of_a_huge_file_that_is_no_trace_only_the_beginning_is_read() {
        let folder = Folder::new("huge");
        let path = folder.0.join("disk.img");
        File::create(&path).and_then(|file| file.set_len(1 << 40)).expect("sparse");
        assert_eq!(read(&path).expect("readable").len(), 4096);
        fs::write(&path, [NAME, &[1; 5000]].concat()).expect("writable");
        assert_eq!(read(&path).expect("readable").len(), NAME.len() + 5000);
    }

    #[test]
    fn files_are_their_owners_alone() {
        let folder = Folder::new("mode");
        let path = folder.0.join("a.offlock");
        drop(create_new(&path).expect("new"));
        assert_eq!(mode(&path), 0o600);
        fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).expect("ours");
        drop(replace(&path).expect("a file"));
        assert_eq!(mode(&path), 0o600);
        write_named(&path, |out| out.write_all(b"x")).expect("a file");
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn a_named_file_is_replaced_only_by_a_complete_one() {
        let folder = Folder::new("replace");
        let path = folder.0.join("page.html");
        fs::write(&path, "before").expect("writable");
        let failed =
            write_named(&path, |out| out.write_all(b"half").and_then(|()| Err(io::Error::other("full"))));
        assert!(failed.is_err());
        assert_eq!(fs::read_to_string(&path).expect("there"), "before");
        write_named(&path, |out| out.write_all(b"after")).expect("writable");
        assert_eq!(fs::read_to_string(&path).expect("there"), "after");
        assert_eq!(fs::read_dir(&folder.0).expect("ours").count(), 1, "nothing is left behind");
    }

    #[test]
    fn what_nobody_named_is_not_overwritten() {
        let folder = Folder::new("beside");
        let path = folder.0.join("report.json");
        fs::write(path.with_extension("offlock"), "mine").expect("writable");
        for name in ["report-2.offlock", "report-3.offlock"] {
            let made = write_beside(&path, "offlock", |out| out.write_all(b"trace")).expect("writable");
            assert_eq!(made, folder.0.join(name));
        }
        assert_eq!(fs::read_to_string(path.with_extension("offlock")).expect("there"), "mine");
    }

    #[test]
    fn devices_are_written_to_and_pipes_are_not_waited_for() {
        replace(Path::new("/dev/null")).expect("a device").write_all(b"x").expect("takes all");
        let folder = Folder::new("pipe");
        let pipe = folder.0.join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("there is mkfifo");
        assert!(made.success());
        assert!(read(&pipe).expect_err("a pipe").to_string().contains("not a regular file"));
        assert!(replace(&pipe).is_err());
        assert!(read_own(&pipe, 100).is_err());
    }
}
