//! The functions that were met in stacks, by the code objects that these execute.
//!
//! What a code object says of itself identifies its function (`code_texts.rs`). To read all of that for each frame of each
//! stack means to wait for memory. So it is read once for each version of the code at an address, where code has versions,
//! and a stack that was met before is found by the addresses, versions and instructions of its functions.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{iter, mem};

use offlock_core::trace::{Frame, Function, Remade, Stack, code_era};
use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use super::code_texts::{CONSTANTS, CodeHeader, CodeText, read_headers, read_texts, types};
use super::line_table::line_of;
use super::memory::{Foreign, Memory};
use super::tasks;

/// The functions that were met.
#[derive(Default)]
pub(super) struct Known {
    era: u32,
    functions: Vec<KnownFunction>,
    /// Their numbers by what identifies their code.
    by_identity: HashMap<Arc<[u8]>, usize>,
    /// Where their code was met.
    by_address: FxHashMap<usize, Met>,
    /// The stacks that were met, and the number of frames in them.
    stacks: FxHashMap<StackKey, Stack>,
    frames: usize,
    /// The memory of the key that is looked up.
    key: StackKey,
    /// The functions that stand for asyncio tasks, by their names.
    tasks: HashMap<String, Function>,
}

/// The number of the function whose code was at an address, and the constants of that code, which no other has had there.
struct Met {
    number: usize,
    constants: Option<[u8; CONSTANTS]>,
}

struct KnownFunction {
    identity: Arc<[u8]>,
    function: Function,
    name: String,
    first_line: u32,
    /// Where the table of lines begins in the identity.
    table: usize,
    /// The lines of instructions.
    lines: FxHashMap<usize, u32>,
}

/// What two stacks have in common that are the same.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct StackKey {
    points: Vec<Point>,
    /// The number of outer frames that are left out.
    beyond: usize,
}

/// An instruction of a function, or the moment before the first one.
#[derive(Clone, PartialEq, Eq)]
struct Point {
    address: usize,
    instruction: Option<usize>,
    constants: [u8; CONSTANTS],
}

impl Hash for Point {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.address, self.instruction).hash(state);
    }
}

impl StackKey {
    /// Adds a function in execution, by the address and the header of its code, and its instruction. `None` where code has no
    /// versions.
    pub(super) fn add(
        &mut self,
        address: usize,
        code: CodeHeader<'_>,
        instruction: Option<usize>,
    ) -> Option<()> {
        self.points.push(Point { address, instruction, constants: *known_constants(code)? });
        Some(())
    }

    /// Leaves an outer frame out.
    pub(super) fn leave_out(&mut self) {
        self.beyond += 1;
    }

    fn clear(&mut self) {
        self.points.clear();
        self.beyond = 0;
    }
}

/// The constants of code that identify it; `None` where code has no versions.
fn known_constants(code: CodeHeader<'_>) -> Option<&[u8; CONSTANTS]> {
    code.constants().filter(|_| HAS_VERSIONS.load(Ordering::Relaxed))
}

/// The most functions that are remembered.
const MOST_KNOWN: usize = 1 << 14;
/// The most frames of stacks that are remembered, about 100 bytes each.
const MOST_FRAMES: usize = 1 << 15;

static KNOWN: Remade<Mutex<Known>> = Remade::new();

/// This process's functions, as far as the recorder knows their numbers.
pub(super) fn known() -> MutexGuard<'static, Known> {
    let mut known = KNOWN.get_or_make(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if known.era != code_era() || known.functions.len() + known.tasks.len() > MOST_KNOWN {
        *known = Known { era: code_era(), ..Known::default() };
    }
    known
}

/// In the child of a fork: another thread may have held the lock of the parent's table.
pub(crate) fn after_fork_in_child() {
    KNOWN.forget();
}

impl Known {
    /// When the functions were numbered.
    pub(super) fn era(&self) -> u32 {
        self.era
    }

    /// The stack with the key that `identify` makes, if it was met before, or else the one that `read` returns. `identify`
    /// returns `None` if the stack has no key.
    pub(super) fn stack(
        &mut self,
        identify: impl FnOnce(&mut StackKey) -> Option<()>,
        read: impl FnOnce(&mut Self) -> Option<Stack>,
    ) -> Option<Stack> {
        let mut key = mem::take(&mut self.key);
        key.clear();
        let stack = match identify(&mut key) {
            Some(()) => self.stacks.get(&key).copied().or_else(|| {
                let stack = read(self)?;
                self.remember(key.clone(), stack);
                Some(stack)
            }),
            None => read(self),
        };
        self.key = key;
        stack
    }

    fn remember(&mut self, key: StackKey, stack: Stack) {
        if self.frames >= MOST_FRAMES {
            self.stacks.clear();
            self.frames = 0;
        }
        self.frames += key.points.len();
        self.stacks.insert(key, stack);
    }

    /// The numbers of the functions whose code is at these addresses; `None` if some of it cannot be read.
    pub(super) fn numbers_of(
        &mut self,
        memory: &impl Memory,
        codes: &[(usize, CodeHeader<'_>)],
    ) -> Option<Vec<usize>> {
        let new: Vec<_> = codes.iter().copied().filter(|code| !self.has_met(*code)).collect();
        if !new.is_empty() {
            let headers: Vec<CodeHeader<'_>> = new.iter().map(|(_, header)| *header).collect();
            let mut buffer = Vec::new();
            let texts = read_texts(memory, types(), &headers, &mut buffer)?;
            new.iter().zip(&texts).for_each(|(code, text)| self.meet(*code, text));
        }
        codes.iter().map(|(address, _)| Some(self.by_address.get(address)?.number)).collect()
    }

    /// Whether its version says that the code was met at its address.
    fn has_met(&self, (address, header): (usize, CodeHeader<'_>)) -> bool {
        let met = self.by_address.get(&address);
        known_constants(header)
            .zip(met)
            .is_some_and(|(constants, met)| met.constants.as_ref() == Some(constants))
    }

    /// Notes which function has the code at an address.
    fn meet(&mut self, (address, header): (usize, CodeHeader<'_>), text: &CodeText<'_>) {
        let met = self.by_address.get(&address).map(|met| met.number);
        let same = met.filter(|number| text.is(&self.functions[*number].identity));
        let number = same.unwrap_or_else(|| self.number_of(text));
        if self.by_address.len() >= MOST_KNOWN {
            self.by_address.clear();
        }
        self.by_address.insert(address, Met { number, constants: header.constants().copied() });
    }

    /// The number of the function that says this of itself.
    fn number_of(&mut self, text: &CodeText<'_>) -> usize {
        let identity = text.identity();
        if let Some(number) = self.by_identity.get(&identity[..]) {
            return *number;
        }
        let (function, identity): (_, Arc<[u8]>) = (Function::numbered(), identity.into());
        let (name, first_line, table) = (text.name(), text.first_line(), identity.len() - text.table().len());
        function.describe(&name, &text.file(), first_line);
        let lines = FxHashMap::default();
        self.by_identity.insert(Arc::clone(&identity), self.functions.len());
        self.functions.push(KnownFunction { identity, function, name, first_line, table, lines });
        self.functions.len() - 1
    }

    /// The qualified name of a function.
    pub(super) fn name(&self, number: usize) -> &str {
        &self.functions[number].name
    }

    /// A frame that executes an instruction of a function, or has not executed any.
    pub(super) fn frame(&mut self, number: usize, instruction: Option<usize>) -> Frame {
        let KnownFunction { identity, function, first_line, table, lines, .. } = &mut self.functions[number];
        let line = |index| line_of(&identity[*table..], *first_line, index).unwrap_or(0);
        let line = match instruction {
            Some(index) => *lines.entry(index).or_insert_with(|| line(index)),
            None => *first_line,
        };
        Frame { function: *function, line }
    }

    /// A frame that stands for an asyncio task, or for all of a coroutine that nobody has named.
    pub(super) fn task(&mut self, name: &str) -> Frame {
        let name = tasks::grouped(name);
        let function = self.tasks.get(&*name).copied().unwrap_or_else(|| {
            let function = Function::numbered();
            function.describe(&name, "", 0);
            self.tasks.insert(name.to_string(), function);
            function
        });
        Frame { function, line: 0 }
    }
}

/// Whether a code object has a version where one is expected.
static HAS_VERSIONS: AtomicBool = AtomicBool::new(false);

/// Finds out whether code objects have a version where one is expected: those of new ones increase.
pub(super) fn find_versions(py: Python<'_>) {
    HAS_VERSIONS.store(do_versions_increase(py), Ordering::Relaxed);
}

fn do_versions_increase(py: Python<'_>) -> bool {
    let version = || {
        let code = py.import("builtins").ok()?.getattr("compile").ok()?.call1(("0", "", "eval")).ok()?;
        read_headers(&Foreign::new(), iter::once(code.as_ptr() as usize), &mut Vec::new())?[0].version()
    };
    let versions = [version(), version(), version()];
    let [Some(first), Some(second), Some(third)] = versions else { return false };
    first < second && second < third && third - first < 1 << 16
}
