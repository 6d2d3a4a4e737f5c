//! What code objects say of themselves: names, files, lines.
//!
//! An address does not identify a code object: `exec` makes and frees them, and the next one may lie at the
//! same place. Keeping each alive would need its reference count, which another thread may be changing. So
//! all that is shown of a code object is read, and identifies it: two that say the same are the same to the
//! reader of a trace, and one can never get another one's name. From 3.12 on, a code object has a version,
//! which tells whether that was read before of the one that now lies at an address.

use pyo3::ffi;

use super::frame_layout::{
    BYTES_DATA, FILE_NAME, FIRST_TRACEABLE_BEFORE, FLAGS, LAYOUT, LINE_TABLE, QUALIFIED_NAME, SIZE, STR_DATA,
    STR_LENGTH, STR_STATE, TYPE, VERSION, str_form,
};
use super::memory::{Memory, Own, Place};

/// The addresses of the types of the objects that are read.
#[derive(Clone, Copy)]
pub(super) struct Types {
    pub(super) code: usize,
    pub(super) text: usize,
    pub(super) bytes: usize,
}

/// Those of this interpreter.
pub(super) fn types() -> Types {
    Types {
        code: &raw const ffi::PyCode_Type as usize,
        text: &raw const ffi::PyUnicode_Type as usize,
        bytes: &raw const ffi::PyBytes_Type as usize,
    }
}

/// The most bytes of a name that are kept.
const LONGEST_NAME: usize = 1_024;
/// The largest table of lines that is read. The functions with larger ones are generated.
const LARGEST_TABLE: usize = 1 << 16;

/// The size of the part of a code object before its instructions.
const CODE: usize = LAYOUT.instructions;
/// The size of its part from the first line to the address of the table of lines, with the version.
pub(super) const CONSTANTS: usize = LINE_TABLE + size_of::<usize>() - LAYOUT.first_line;
/// The size of what is read of a `str`'s header, and of that of a `bytes`.
const HEADER: usize = 40;

/// The parts before the instructions of the code objects at these addresses, in their order; `None` if one cannot be read.
/// They may lie in `buffer`.
pub(super) fn read_headers<'a>(
    memory: &'a impl Memory,
    codes: impl Iterator<Item = usize>,
    buffer: &'a mut Vec<u8>,
) -> Option<Vec<CodeHeader<'a>>> {
    let places: Vec<Place> = codes.map(|code| (code, CODE)).collect();
    Some(memory.contents(&places, buffer)?.into_iter().map(CodeHeader).collect())
}

/// The part before the instructions of the code object at this address, which the calling thread executes.
pub(super) fn own_header(memory: &Own, code: usize) -> Option<CodeHeader<'_>> {
    memory.content((code, CODE)).map(CodeHeader)
}

/// The part of a code object before its instructions.
#[derive(Clone, Copy)]
pub(super) struct CodeHeader<'a>(&'a [u8]);

impl<'a> CodeHeader<'a> {
    /// Whether it is one.
    pub(super) fn is_code(self, types: Types) -> bool {
        word(self.0, TYPE) == Some(types.code)
    }

    /// The number of its instructions.
    pub(super) fn instructions(self) -> usize {
        word(self.0, SIZE).unwrap_or(0)
    }

    /// The index of the first instruction at which a frame is complete.
    pub(super) fn first_traceable(self) -> usize {
        int(self.0, CODE - FIRST_TRACEABLE_BEFORE).unwrap_or(0) as usize
    }

    fn first_line(self) -> Option<u32> {
        int(self.0, LAYOUT.first_line)
    }

    fn flags(self) -> u32 {
        int(self.0, FLAGS).unwrap_or(0)
    }

    /// Whether it is that of an `async def` that yields nothing.
    pub(super) fn is_of_coroutine(self) -> bool {
        self.flags() & ffi::CO_COROUTINE as u32 != 0
    }

    /// Its version; `None` if it has none.
    pub(super) fn version(self) -> Option<u32> {
        int(self.0, VERSION?).filter(|version| *version != 0)
    }

    /// What of it never changes while it executes, with its version: no other code object of the interpreter has that, and
    /// one of another interpreter would need the same address, first line, and addresses of names, too. `None` if it has no
    /// version.
    pub(super) fn constants(self) -> Option<&'a [u8; CONSTANTS]> {
        self.version()?;
        self.0.get(LAYOUT.first_line..)?.first_chunk()
    }

    /// The addresses of its name, its file and its table of lines.
    fn objects(self) -> Option<[usize; 3]> {
        Some([word(self.0, QUALIFIED_NAME)?, word(self.0, FILE_NAME)?, word(self.0, LINE_TABLE)?])
    }
}

/// What a code object says.
pub(super) struct CodeText<'a> {
    name: Text<'a>,
    file: Text<'a>,
    table: &'a [u8],
    first_line: u32,
    flags: u32,
}

/// The characters of a `str`, and how many bytes each takes.
#[derive(Clone, Copy)]
struct Text<'a> {
    bytes: &'a [u8],
    width: usize,
}

/// What these code objects say, in their order; `None` if one cannot be read, or makes no sense. It may lie in `buffer`.
pub(super) fn read_texts<'a>(
    memory: &'a impl Memory,
    types: Types,
    codes: &[CodeHeader<'_>],
    buffer: &'a mut Vec<u8>,
) -> Option<Vec<CodeText<'a>>> {
    let objects: Vec<[usize; 3]> = codes.iter().map(|code| code.objects()).collect::<Option<_>>()?;
    let places: Vec<Place> = objects.iter().flatten().map(|object| (*object, HEADER)).collect();
    let mut headers = Vec::with_capacity(places.len() * HEADER);
    memory.read_all(&places, &mut headers)?;
    let (headers, _) = headers.as_chunks::<HEADER>();
    let (mut places, mut widths) = (Vec::with_capacity(headers.len()), Vec::with_capacity(codes.len()));
    for ([name, file, table], [name_header, file_header, table_header]) in
        objects.into_iter().zip(headers.as_chunks::<3>().0)
    {
        let (name, name_width) = place_of_text(types, name, name_header)?;
        let (file, file_width) = place_of_text(types, file, file_header)?;
        places.extend([name, file, place_of_table(types, table, table_header)?]);
        widths.push([name_width, file_width]);
    }
    let contents = memory.contents(&places, buffer)?;
    let text = |((code, widths), contents): ((&CodeHeader<'_>, [usize; 2]), &[&'a [u8]; 3])| {
        let [name, file, table] = *contents;
        let [name, file] = [(name, widths[0]), (file, widths[1])].map(|(bytes, width)| Text { bytes, width });
        Some(CodeText { name, file, table, first_line: code.first_line()?, flags: code.flags() })
    };
    codes.iter().zip(widths).zip(contents.as_chunks::<3>().0).map(text).collect()
}

/// The text of the `str` at an address; `None` if it is none, or cannot be read.
pub(super) fn read_text(memory: &mut impl Memory, types: Types, address: usize) -> Option<String> {
    let mut header = [0; HEADER];
    memory.read(address, &mut header)?;
    let (place, width) = place_of_text(types, address, &header)?;
    let mut bytes = Vec::with_capacity(place.1);
    memory.read_all(&[place], &mut bytes)?;
    Some(Text { bytes: &bytes, width }.decode())
}

/// Where the characters of a `str` are, and how many bytes each takes.
fn place_of_text(types: Types, address: usize, header: &[u8]) -> Option<(Place, usize)> {
    let (width, is_compact, is_ascii) = str_form(int(header, STR_STATE)?);
    let width = width as usize;
    if word(header, TYPE) != Some(types.text) || !is_compact || !matches!(width, 1 | 2 | 4) {
        return None;
    }
    let size = word(header, STR_LENGTH)?.checked_mul(width)?.min(LONGEST_NAME);
    Some(((address + if is_ascii { STR_DATA.ascii } else { STR_DATA.other }, size), width))
}

/// Where the content of a table of lines is.
fn place_of_table(types: Types, address: usize, header: &[u8]) -> Option<Place> {
    let size = word(header, SIZE).filter(|_| word(header, TYPE) == Some(types.bytes))?;
    Some((address + BYTES_DATA, if size <= LARGEST_TABLE { size } else { 0 }))
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    bytes.get(at..)?.first_chunk().map(|word| usize::from_ne_bytes(*word))
}

fn int(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|int| u32::from_ne_bytes(*int))
}

impl CodeText<'_> {
    /// The line of its first instruction, which is that of its `def` or of the first decorator.
    pub(super) fn first_line(&self) -> u32 {
        self.first_line
    }

    /// The flags of its code.
    pub(super) fn flags(&self) -> u32 {
        self.flags
    }

    /// Its qualified name.
    pub(super) fn name(&self) -> String {
        self.name.decode()
    }

    /// The name of its file.
    pub(super) fn file(&self) -> String {
        self.file.decode()
    }

    /// Its table of lines, which count from the first one.
    pub(super) fn table(&self) -> &[u8] {
        self.table
    }

    /// All that it says.
    fn parts(&self) -> [&[u8]; 3] {
        [self.name.bytes, self.file.bytes, self.table]
    }

    /// What tells how long the parts of an identity are, and has the rest of it.
    fn head(&self) -> [u8; HEAD] {
        let lengths = [self.name.bytes.len(), self.file.bytes.len()].map(|length| length as u32);
        let widths = [self.name.width, self.file.width].map(|width| width as u32);
        bytemuck::cast([[self.first_line, widths[0] << 8 | widths[1]], lengths])
    }

    /// The bytes that identify it.
    pub(super) fn identity(&self) -> Vec<u8> {
        let [name, file, table] = self.parts();
        [&self.head(), name, file, table].concat()
    }

    /// Whether these bytes identify it.
    pub(super) fn is(&self, identity: &[u8]) -> bool {
        let mut rest = Some(identity);
        let [name, file, table] = self.parts();
        for part in [&self.head(), name, file] {
            rest = rest.and_then(|rest| rest.strip_prefix(part));
        }
        rest == Some(table)
    }
}

/// The size of an identity's [`head`](CodeText::head).
const HEAD: usize = 16;

impl Text<'_> {
    /// Those that stand alone only in Python become replacement characters.
    fn decode(self) -> String {
        let character = |character: &[u8]| {
            let number = character.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte));
            char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)
        };
        self.bytes.chunks_exact(self.width).map(character).collect()
    }
}
