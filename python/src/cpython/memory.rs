//! Reads memory of this process at addresses that the interpreter's structures hold.

use libc::{c_ulong, iovec};

/// A piece of memory: its address and its size.
pub(super) type Place = (usize, usize);

/// A way to read memory.
pub(super) trait Memory {
    /// Appends the contents of all places to `out`; `None` if one of them cannot be read.
    fn read_all(&self, places: &[Place], out: &mut Vec<u8>) -> Option<()>;

    /// The contents of all places, which may lie in `buffer`; `None` if one of them cannot be read.
    fn contents<'a>(&'a self, places: &[Place], buffer: &'a mut Vec<u8>) -> Option<Vec<&'a [u8]>>;

    /// Fills `out` from an address; `None` if that cannot be read.
    fn read(&mut self, address: usize, out: &mut [u8]) -> Option<()>;

    /// The word at an address.
    fn word(&mut self, address: usize) -> Option<usize> {
        let mut word = [0; size_of::<usize>()];
        self.read(address, &mut word)?;
        Some(usize::from_ne_bytes(word))
    }
}

/// Memory of the calling thread's own frames, and of what they keep alive, for as long as this exists.
pub(super) struct Own(());

impl Own {
    /// # Safety
    /// All addresses that are read must come from the calling thread's own frames, with a layout that was
    /// verified, while no other thread changes what they refer to.
    pub(super) unsafe fn new() -> Self {
        Self(())
    }

    /// The content of a place, where it is.
    pub(super) fn content(&self, (address, size): Place) -> Option<&[u8]> {
        // SAFETY: by the promise of `new`, `size` bytes at the address are readable and do not change.
        (address != 0).then(|| unsafe { std::slice::from_raw_parts(address as *const u8, size) })
    }
}

impl Memory for Own {
    fn read_all(&self, places: &[Place], out: &mut Vec<u8>) -> Option<()> {
        self.contents(places, &mut Vec::new())?
            .into_iter()
            .for_each(|content| out.extend_from_slice(content));
        Some(())
    }

    /// Where they are: nothing is copied.
    fn contents<'a>(&'a self, places: &[Place], _: &'a mut Vec<u8>) -> Option<Vec<&'a [u8]>> {
        places.iter().map(|place| self.content(*place)).collect()
    }

    fn read(&mut self, address: usize, out: &mut [u8]) -> Option<()> {
        if address == 0 {
            return None;
        }
        // SAFETY: by the promise of `new`, the bytes are readable and do not change; `out` is memory of its
        // own.
        unsafe { std::ptr::copy_nonoverlapping(address as *const u8, out.as_mut_ptr(), out.len()) };
        Some(())
    }
}

const PAGE: usize = 4096;

/// How many pages are kept.
const PAGES: usize = 8;

/// Memory that another thread may be changing or freeing. The system reads it, for which a wrong address is
/// an error and not a crash. The last pages are kept, because the frames of a thread lie side by side; those with which
/// functions in C call Python are on another stack.
pub(super) struct Foreign {
    process: libc::pid_t,
    pages: Vec<(usize, [u8; PAGE])>,
    /// The index of the page that is replaced next.
    oldest: usize,
}

impl Foreign {
    pub(super) fn new() -> Self {
        // SAFETY: getpid has no preconditions.
        Self { process: unsafe { libc::getpid() }, pages: Vec::with_capacity(PAGES), oldest: 0 }
    }

    /// The page at an address.
    fn page(&mut self, address: usize) -> Option<&[u8; PAGE]> {
        if let Some(index) = self.pages.iter().position(|(at, _)| *at == address) {
            return Some(&self.pages[index].1);
        }
        let mut page = [0; PAGE];
        read_process(self.process, &[(address, PAGE)], &mut page)?;
        if self.pages.len() < PAGES {
            self.pages.push((address, page));
            return self.pages.last().map(|(_, page)| page);
        }
        let place = &mut self.pages[self.oldest];
        *place = (address, page);
        self.oldest = (self.oldest + 1) % PAGES;
        Some(&place.1)
    }
}

impl Memory for Foreign {
    fn read_all(&self, places: &[Place], out: &mut Vec<u8>) -> Option<()> {
        let start = out.len();
        out.resize(start + places.iter().map(|(_, size)| size).sum::<usize>(), 0);
        read_process(self.process, places, &mut out[start..])
    }

    fn contents<'a>(&'a self, places: &[Place], buffer: &'a mut Vec<u8>) -> Option<Vec<&'a [u8]>> {
        buffer.clear();
        self.read_all(places, buffer)?;
        let mut rest = &buffer[..];
        places.iter().map(|&(_, size)| rest.split_off(..size)).collect()
    }

    fn read(&mut self, address: usize, out: &mut [u8]) -> Option<()> {
        let (page, within) = (address & !(PAGE - 1), address & (PAGE - 1));
        if within + out.len() > PAGE {
            return read_process(self.process, &[(address, out.len())], out);
        }
        out.copy_from_slice(&self.page(page)?[within..within + out.len()]);
        Some(())
    }
}

/// Fills `out` with the contents of all places of this process, one after another.
fn read_process(process: libc::pid_t, places: &[Place], out: &mut [u8]) -> Option<()> {
    let local = iovec { iov_base: out.as_mut_ptr().cast(), iov_len: out.len() };
    let remote: Vec<iovec> = places
        .iter()
        .map(|(address, size)| iovec { iov_base: *address as *mut libc::c_void, iov_len: *size })
        .collect();
    // SAFETY: `local` is the memory of `out`; the system checks the remote addresses.
    let read = unsafe {
        libc::process_vm_readv(process, &raw const local, 1, remote.as_ptr(), remote.len() as c_ulong, 0)
    };
    (usize::try_from(read) == Ok(out.len())).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_read_the_same() {
        let bytes: Vec<u8> = (0..3 * PAGE).map(|i| i as u8).collect();
        let at = bytes.as_ptr() as usize;
        // SAFETY: only `bytes` is read, which nobody changes.
        let (mut own, mut foreign) = (unsafe { Own::new() }, Foreign::new());
        let ways: [&mut dyn Memory; 2] = [&mut own, &mut foreign];
        for memory in ways {
            let mut word = [0; 8];
            for offset in [0, 1, PAGE - 4, PAGE, 2 * PAGE + 7] {
                memory.read(at + offset, &mut word).expect("readable");
                assert_eq!(word, bytes[offset..offset + 8]);
            }
            let mut all = vec![7];
            memory.read_all(&[(at + 5, 3), (at + 5_000, 4_000)], &mut all).expect("readable");
            assert_eq!(all[1..4], bytes[5..8]);
            assert_eq!(all[4..], bytes[5_000..9_000]);
            let mut buffer = vec![7];
            let contents = memory.contents(&[(at + 5, 3), (at + 1, 0), (at + 5_000, 4_000)], &mut buffer);
            assert_eq!(contents, Some(vec![&bytes[5..8], &[], &bytes[5_000..9_000]]));
            assert_eq!(memory.contents(&[(0, 8)], &mut Vec::new()), None);
            assert_eq!(memory.word(0), None);
        }
        assert_eq!(foreign.word(8), None);
        assert_eq!(foreign.read_all(&[(at, 8), (8, 8)], &mut Vec::new()), None);
    }
}
