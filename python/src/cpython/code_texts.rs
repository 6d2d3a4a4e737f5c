//! What code objects say of themselves: names, files, lines.
//!
//! An address does not identify a code object: `exec` makes and frees them, and the next one may lie at the
//! same place. Keeping each alive would need its reference count, which another thread may be changing. So
//! all that is shown of a code object is copied out whenever it is met, and these bytes identify it: two that
//! say the same are the same to the reader of a trace, and one can never get another one's name.

use pyo3::ffi;

use super::frame_layout::{
    BYTES_DATA, FILE_NAME, FIRST_TRACEABLE_BEFORE, LAYOUT, LINE_TABLE, QUALIFIED_NAME, SIZE, STR_DATA,
    STR_LENGTH, STR_STATE, TYPE, str_form,
};
use super::memory::{Memory, Place};

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
/// The size of what is read of a `str`'s header, and of that of a `bytes`.
const HEADER: usize = 40;

/// The parts before the instructions of several code objects.
pub(super) struct CodeHeaders(Vec<u8>);

impl CodeHeaders {
    /// Reads those at these addresses; `None` if one cannot be read.
    pub(super) fn read(memory: &mut impl Memory, codes: &[usize]) -> Option<Self> {
        let mut headers = Vec::with_capacity(codes.len() * CODE);
        memory.read_all(&codes.iter().map(|code| (*code, CODE)).collect::<Vec<_>>(), &mut headers)?;
        Some(Self(headers))
    }

    /// In the order in which the addresses were given.
    pub(super) fn iter(&self) -> impl Iterator<Item = CodeHeader<'_>> {
        self.0.chunks_exact(CODE).map(CodeHeader)
    }
}

/// The part of a code object before its instructions.
#[derive(Clone, Copy)]
pub(super) struct CodeHeader<'a>(&'a [u8]);

impl CodeHeader<'_> {
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

    /// The addresses of its name, its file and its table of lines.
    fn objects(self) -> Option<[usize; 3]> {
        Some([word(self.0, QUALIFIED_NAME)?, word(self.0, FILE_NAME)?, word(self.0, LINE_TABLE)?])
    }
}

/// The texts of several code objects, one after the other in one buffer.
pub(super) struct CodeTexts {
    bytes: Vec<u8>,
    parts: Vec<Parts>,
}

/// Where the texts of one code object are in the buffer, and what else it says.
struct Parts {
    start: usize,
    name: Text,
    file: Text,
    table: usize,
    first_line: u32,
}

/// A text in the buffer: how long it is, and how many bytes a character takes.
#[derive(Clone, Copy)]
struct Text {
    size: usize,
    width: usize,
}

/// What a code object says.
pub(super) struct CodeText<'a> {
    /// The bytes that identify it.
    pub(super) bytes: &'a [u8],
    parts: &'a Parts,
}

impl CodeTexts {
    /// Reads the texts of these code objects; `None` if one cannot be read, or makes no sense.
    pub(super) fn read(memory: &mut impl Memory, types: Types, codes: &[CodeHeader<'_>]) -> Option<Self> {
        let objects: Vec<[usize; 3]> = codes.iter().map(|code| code.objects()).collect::<Option<_>>()?;
        let places: Vec<Place> = objects.iter().flatten().map(|object| (*object, HEADER)).collect();
        let mut headers = Vec::with_capacity(places.len() * HEADER);
        memory.read_all(&places, &mut headers)?;
        let mut gathered = Gathered { places: Vec::new(), parts: Vec::new(), end: 0 };
        for ((code, objects), headers) in codes.iter().zip(objects).zip(headers.chunks_exact(3 * HEADER)) {
            gathered.add(types, code.first_line()?, objects, headers)?;
        }
        let mut bytes = Vec::with_capacity(gathered.end);
        memory.read_all(&gathered.places, &mut bytes)?;
        Some(Self { bytes, parts: gathered.parts })
    }

    /// In the order in which the code objects were given.
    pub(super) fn iter(&self) -> impl Iterator<Item = CodeText<'_>> {
        self.parts.iter().map(|parts| {
            let end = parts.start + parts.name.size + parts.file.size + parts.table;
            CodeText { bytes: &self.bytes[parts.start..end], parts }
        })
    }
}

/// The text of the `str` at an address; `None` if it is none, or cannot be read.
pub(super) fn read_text(memory: &mut impl Memory, types: Types, address: usize) -> Option<String> {
    let mut header = [0; HEADER];
    memory.read(address, &mut header)?;
    let mut gathered = Gathered { places: Vec::new(), parts: Vec::new(), end: 0 };
    let text = gathered.add_text(types, address, &header)?;
    let mut bytes = Vec::with_capacity(gathered.end);
    memory.read_all(&gathered.places, &mut bytes)?;
    Some(decode(text, &bytes))
}

/// Where the texts are that are to be read.
struct Gathered {
    places: Vec<Place>,
    parts: Vec<Parts>,
    end: usize,
}

impl Gathered {
    fn add(&mut self, types: Types, first_line: u32, objects: [usize; 3], headers: &[u8]) -> Option<()> {
        let [name_at, file_at, table_at] = objects;
        let start = self.end;
        let name = self.add_text(types, name_at, headers.get(..HEADER)?)?;
        let file = self.add_text(types, file_at, headers.get(HEADER..2 * HEADER)?)?;
        let table = self.add_table(types, table_at, headers.get(2 * HEADER..)?)?;
        self.parts.push(Parts { start, name, file, table, first_line });
        Some(())
    }

    fn add_place(&mut self, address: usize, size: usize) {
        self.places.push((address, size));
        self.end += size;
    }

    fn add_text(&mut self, types: Types, address: usize, header: &[u8]) -> Option<Text> {
        let (width, is_compact, is_ascii) = str_form(int(header, STR_STATE)?);
        let width = width as usize;
        if word(header, TYPE) != Some(types.text) || !is_compact || !matches!(width, 1 | 2 | 4) {
            return None;
        }
        let size = word(header, STR_LENGTH)?.checked_mul(width)?.min(LONGEST_NAME);
        self.add_place(address + if is_ascii { STR_DATA.ascii } else { STR_DATA.other }, size);
        Some(Text { size, width })
    }

    fn add_table(&mut self, types: Types, address: usize, header: &[u8]) -> Option<usize> {
        let size = word(header, SIZE).filter(|_| word(header, TYPE) == Some(types.bytes))?;
        let size = if size <= LARGEST_TABLE { size } else { 0 };
        self.add_place(address + BYTES_DATA, size);
        Some(size)
    }
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
        self.parts.first_line
    }

    /// Its qualified name.
    pub(super) fn name(&self) -> String {
        decode(self.parts.name, &self.bytes[..self.parts.name.size])
    }

    /// The name of its file.
    pub(super) fn file(&self) -> String {
        let (start, file) = (self.parts.name.size, self.parts.file);
        decode(file, &self.bytes[start..start + file.size])
    }

    /// Its table of lines.
    pub(super) fn table(&self) -> &[u8] {
        &self.bytes[self.parts.name.size + self.parts.file.size..]
    }
}

/// The characters of a `str`; those that stand alone only in Python become replacement characters.
fn decode(text: Text, bytes: &[u8]) -> String {
    let character = |character: &[u8]| {
        let number = character.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte));
        char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)
    };
    bytes.chunks_exact(text.width).map(character).collect()
}
