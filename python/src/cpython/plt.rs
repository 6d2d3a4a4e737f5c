//! The import slots of a loaded object: the targets of its calls into other libraries.
//!
//! An ELF object calls `pthread_mutex_lock` through a pointer that the dynamic linker filled in. Replacing
//! that pointer redirects the calls of this one object only. The tables read here are those of the System V
//! ABI, chapter "Dynamic Linking"; `dl_iterate_phdr` finds them without opening a file.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use libc::{Elf64_Phdr, Elf64_Rela, Elf64_Sym, dl_phdr_info};

const DT_PLTRELSZ: i64 = 2;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_JMPREL: i64 = 23;

/// Relocation types that fill a slot with a function's address: GLOB_DAT and JUMP_SLOT.
#[cfg(target_arch = "x86_64")]
const SLOT_RELOCATIONS: [u32; 2] = [6, 7];
#[cfg(target_arch = "aarch64")]
const SLOT_RELOCATIONS: [u32; 2] = [1025, 1026];

/// An entry of the dynamic section.
#[repr(C)]
struct Dyn {
    tag: i64,
    value: u64,
}

/// One pointer through which an object calls an imported function.
pub(crate) struct Slot {
    address: *const AtomicUsize,
    /// Whether the linker made the slot read-only once it had filled it in.
    read_only: bool,
    /// Where the object lies: until the first call, a slot points into the object itself, to code that calls
    /// the linker.
    object: Range<usize>,
    /// The slot's current and previous target; none while it is not redirected.
    redirection: Option<(usize, usize)>,
}

// SAFETY: a slot is only an address; it belongs to an object that is never unloaded (see `find`).
unsafe impl Send for Slot {}

impl Slot {
    /// Redirects the calls to `function`. Returns their previous target, unless the linker has not resolved
    /// it yet.
    pub(crate) fn redirect(&mut self, function: usize) -> io::Result<Option<usize>> {
        let before = self.write(|slot| slot.swap(function, Ordering::AcqRel))?;
        self.redirection = Some((function, before));
        Ok((!self.object.contains(&before)).then_some(before))
    }

    /// Restores the previous target of the calls. False when they have been redirected once more since: that
    /// is left unchanged, because the other tool may still call the target that it replaced.
    pub(crate) fn restore(&mut self) -> io::Result<bool> {
        let Some((function, before)) = self.redirection else { return Ok(true) };
        let put_back = |slot: &AtomicUsize| {
            slot.compare_exchange(function, before, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        let is_restored = self.write(put_back)?;
        self.redirection = None;
        Ok(is_restored)
    }

    fn write<T>(&self, change: impl FnOnce(&AtomicUsize) -> T) -> io::Result<T> {
        if self.read_only {
            self.protect(libc::PROT_READ | libc::PROT_WRITE)?;
        }
        // SAFETY: the slot is aligned, mapped for as long as its object, and writable now; other
        // threads read it with one load.
        let result = change(unsafe { &*self.address });
        if self.read_only {
            self.protect(libc::PROT_READ)?;
        }
        Ok(result)
    }

    fn protect(&self, protection: c_int) -> io::Result<()> {
        // SAFETY: sysconf has no preconditions.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let start = self.address as usize & !(page - 1);
        // SAFETY: the page holds the slot, so it is mapped; the linker's protection of it is restored after
        // the one change in `write`.
        match unsafe { libc::mprotect(start as *mut c_void, page, protection) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// The slots through which the object that contains `code` calls each of `names`.
///
/// `code` is the address of a function of an object that stays loaded for the life of the process, such as
/// the interpreter. The result has one list per name, empty where the object does not import it.
pub(crate) fn find(code: usize, names: &[&CStr]) -> Vec<Vec<Slot>> {
    let mut search = Search { code, names, found: names.iter().map(|_| Vec::new()).collect() };
    // SAFETY: `visit` gets back the pointer to `search`, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}

struct Search<'a> {
    code: usize,
    names: &'a [&'a CStr],
    found: Vec<Vec<Slot>>,
}

/// Called by the linker for each loaded object; a result other than 0 ends the iteration.
unsafe extern "C" fn visit(info: *mut dl_phdr_info, _size: usize, search: *mut c_void) -> c_int {
    // SAFETY: `find` passed a Search, the linker a valid description of a loaded object.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
    // SAFETY: the linker passes the number of headers with their address.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let object = Object { base: info.dlpi_addr as usize, headers };
    if !object.contains(libc::PT_LOAD, search.code) {
        return 0;
    }
    // SAFETY: the object is loaded, so that the memory its dynamic section points to is mapped.
    unsafe { object.collect_slots(search) };
    1
}

/// A loaded object: its address and its program headers.
struct Object<'a> {
    base: usize,
    headers: &'a [Elf64_Phdr],
}

impl Object<'_> {
    /// Whether a segment of the given type contains `address`.
    fn contains(&self, segment: u32, address: usize) -> bool {
        self.headers.iter().filter(|header| header.p_type == segment).any(|header| {
            let start = self.base + header.p_vaddr as usize;
            (start..start + header.p_memsz as usize).contains(&address)
        })
    }

    /// # Safety
    /// The object is loaded and its dynamic section is intact.
    unsafe fn collect_slots(&self, search: &mut Search) {
        // SAFETY: the contract of this function.
        let Some(tables) = (unsafe { self.tables() }) else { return };
        for (start, bytes) in tables.relocations {
            let count = if start == 0 { 0 } else { bytes / size_of::<Elf64_Rela>() };
            for index in 0..count {
                // SAFETY: DT_RELA and DT_JMPREL are arrays of that many bytes.
                let relocation = unsafe { &*(start as *const Elf64_Rela).add(index) };
                // SAFETY: a relocation names a symbol of the object's own symbol table.
                if let Some(name) = unsafe { tables.imported_name(relocation) } {
                    self.keep_if_wanted(relocation, name, search);
                }
            }
        }
    }

    fn keep_if_wanted(&self, relocation: &Elf64_Rela, name: &CStr, search: &mut Search) {
        let Some(wanted) = search.names.iter().position(|&wanted| wanted == name) else { return };
        let address = self.base + relocation.r_offset as usize;
        search.found[wanted].push(Slot {
            address: address as *const AtomicUsize,
            read_only: self.contains(libc::PT_GNU_RELRO, address),
            object: self.bounds(),
            redirection: None,
        });
    }

    /// The addresses from the first to the last that the object occupies.
    fn bounds(&self) -> Range<usize> {
        let loaded = self.headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let starts = loaded.clone().map(|header| self.base + header.p_vaddr as usize);
        let ends = loaded.map(|header| self.base + (header.p_vaddr + header.p_memsz) as usize);
        starts.min().unwrap_or(0)..ends.max().unwrap_or(0)
    }

    /// # Safety
    /// As for `collect_slots`.
    unsafe fn tables(&self) -> Option<Tables> {
        let header = self.headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC)?;
        let mut entry = (self.base + header.p_vaddr as usize) as *const Dyn;
        let mut tables = Tables { symbols: 0, strings: 0, relocations: [(0, 0); 2] };
        loop {
            // SAFETY: the dynamic section ends with an entry whose tag is 0.
            let Dyn { tag, value } = unsafe { entry.read() };
            match tag {
                0 => break,
                DT_SYMTAB => tables.symbols = self.address(value),
                DT_STRTAB => tables.strings = self.address(value),
                DT_RELA => tables.relocations[0].0 = self.address(value),
                DT_RELASZ => tables.relocations[0].1 = value as usize,
                DT_JMPREL => tables.relocations[1].0 = self.address(value),
                DT_PLTRELSZ => tables.relocations[1].1 = value as usize,
                _ => {}
            }
            // SAFETY: this is not the last entry.
            entry = unsafe { entry.add(1) };
        }
        (tables.symbols != 0 && tables.strings != 0).then_some(tables)
    }

    /// glibc stores absolute addresses in the dynamic section, musl those of the file.
    fn address(&self, value: u64) -> usize {
        let value = value as usize;
        if value < self.base { value + self.base } else { value }
    }
}

/// Addresses of the tables that the dynamic section names.
struct Tables {
    symbols: usize,
    strings: usize,
    /// Address and bytes of DT_RELA and DT_JMPREL.
    relocations: [(usize, usize); 2],
}

impl Tables {
    /// The name of the function whose address `relocation` stores, if it stores one.
    ///
    /// # Safety
    /// The relocation belongs to the object of these tables.
    unsafe fn imported_name(&self, relocation: &Elf64_Rela) -> Option<&CStr> {
        if !SLOT_RELOCATIONS.contains(&(relocation.r_info as u32)) {
            return None;
        }
        let symbol = (relocation.r_info >> 32) as usize;
        // SAFETY: the relocation's symbol index lies inside the symbol table, and each symbol's name inside
        // the string table, NUL-terminated.
        unsafe {
            let symbol = &*(self.symbols as *const Elf64_Sym).add(symbol);
            Some(CStr::from_ptr((self.strings + symbol.st_name as usize) as *const c_char))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(value: &'static AtomicUsize) -> Slot {
        Slot { address: value, read_only: false, object: 1_000..2_000, redirection: None }
    }

    #[test]
    fn what_stood_there_before_stands_there_again() {
        for (before, known) in [(7, Some(7)), (1_500, None)] {
            let value: &'static AtomicUsize = Box::leak(Box::new(AtomicUsize::new(before)));
            let mut slot = slot(value);
            assert_eq!(slot.redirect(42).expect("writable"), known);
            assert_eq!(value.load(Ordering::Relaxed), 42);
            assert!(slot.restore().expect("writable"));
            assert_eq!(value.load(Ordering::Relaxed), before);
            assert!(slot.restore().expect("writable"), "once is enough");
        }
    }

    #[test]
    fn what_another_has_put_there_since_stays() {
        let value: &'static AtomicUsize = Box::leak(Box::new(AtomicUsize::new(7)));
        let mut slot = slot(value);
        slot.redirect(42).expect("writable");
        value.store(43, Ordering::Relaxed);
        assert!(!slot.restore().expect("writable"));
        assert_eq!(value.load(Ordering::Relaxed), 43);
    }
}
