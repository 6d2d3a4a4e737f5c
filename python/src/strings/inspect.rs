//! Questions about strings (the available kinds, the memory they keep alive), and copies that share no
//! memory.

use std::collections::{HashMap, HashSet, TryReserveError};
use std::ptr;

use offlock_core::Task;
use offlock_core::text::Memory;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use super::error::StringsError;
use super::long_str::from_utf8;
use crate::cpython::allocator_hook;
use crate::cpython::block_pool::{self, BLOCK};
use crate::cpython::object;
use crate::cpython::sequence::{Container, SequenceBuilder};
use crate::cpython::str_view;
use crate::gil_yield::Yielder;
use crate::large::{self, Large, Refs};
use crate::objects::{Int, Name, Text, name, tuple};
use crate::operations::STRINGS_LOOK;
use crate::region::Region;

/// Enables blocks for new strings.
#[pyfunction]
pub(super) fn enable_blocks(py: Python<'_>) -> PyResult<()> {
    allocator_hook::install(py)
}

/// The reason why each kind is not available; `None` for one that is.
#[pyfunction]
pub(super) fn unavailable(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let reason = |kind: &'static Name, reason: Option<String>| {
        let reason = reason.map(Text).into_bound_py_any(py)?;
        tuple(py, [kind.into_bound_py_any(py)?, reason])
    };
    let block = reason(name!("block"), allocator_hook::unavailable(py)?)?;
    let view = reason(name!("view"), str_view::unavailable(py)?)?;
    tuple(py, [reason(name!("str"), None)?, block, view])
}

/// The class of views.
#[pyfunction]
pub(super) fn view_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    str_view::class(py)
}

/// The bytes that these strings keep alive, including memory shared with others.
#[pyfunction]
pub(super) fn retained(strings: &Bound<'_, PyAny>) -> PyResult<Int> {
    let (py, mut yielder) = (strings.py(), Yielder::yielding());
    let strings = held(strings, &mut yielder)?;
    let addresses = addresses(&strings, py, &mut yielder)?;
    let (plain, mut bytes) = in_region(py, addresses.len(), |task| {
        let (mut plain, mut blocks, mut memories) = (HashMap::new(), HashSet::new(), HashSet::new());
        let mut bytes = 0;
        for (number, &address) in addresses.iter().enumerate() {
            if number % STRETCH == 0 {
                task.check()?;
                reserve(&mut plain, |plain| plain.try_reserve(STRETCH))?;
            }
            match block_pool::home_of(ptr::without_provenance::<u8>(address)) {
                Some(block) if blocks.insert(block) => {
                    bytes += BLOCK;
                    // SAFETY: the string is held, and keeps its block alive, which keeps the characters
                    // alive.
                    let characters = unsafe { block_pool::characters_of(block) };
                    let new = characters.filter(|memory| memories.insert(ptr::from_ref(*memory)));
                    bytes += new.map_or(0, Memory::bytes);
                }
                Some(_) => {}
                None => {
                    plain.entry(address).or_insert(number);
                }
            }
        }
        Ok((Large::new(plain.into_values().collect::<Vec<_>>()), bytes))
    })?;
    for &number in plain.iter() {
        yielder.tick(py)?;
        bytes += strings[number].call_method0(name!("__sizeof__"))?.extract::<usize>()?;
    }
    Ok(Int(bytes))
}

/// The same strings as a list or tuple, those that share memory with others replaced by exact ones that do
/// not. References to one object stay references to one object.
#[pyfunction]
pub(super) fn compact<'py>(strings: &Bound<'py, PyAny>, into: Container) -> PyResult<Bound<'py, PyAny>> {
    let (py, mut yielder) = (strings.py(), Yielder::yielding());
    let strings = held(strings, &mut yielder)?;
    let addresses = addresses(&strings, py, &mut yielder)?;
    let (firsts, numbers) = in_region(py, addresses.len(), |task| sharing(&addresses, task))?;
    let mut detached = Refs::new();
    for &first in firsts.iter() {
        let text = strings[first].to_str()?;
        yielder.tick_bytes(py, text.len())?;
        detached.push(from_utf8(py, text)?)?;
    }
    // Some may be instances of a class of the program, and hold any other objects.
    let mut filling = SequenceBuilder::new(py, into, strings.len())?.of_any();
    for (string, &number) in strings.iter().zip(numbers.iter()) {
        yielder.tick(py)?;
        filling.push(detached.get(number as usize).unwrap_or(string).clone());
    }
    Ok(filling.finish())
}

/// Strings between two checks of the task.
const STRETCH: usize = 1 << 12;

fn in_region<T: Send>(
    py: Python<'_>,
    strings: usize,
    work: impl FnOnce(&Task<'_>) -> Result<T, StringsError> + Send,
) -> PyResult<T> {
    Region::new(&STRINGS_LOOK, strings).run(py, work)
}

type Sharing = (Large<Vec<usize>>, Large<Vec<u32>>);

/// The strings that share memory with others: the index of the first reference to each, and for every string
/// its number in that list, or a number past the end for a string that shares nothing.
fn sharing(addresses: &[usize], task: &Task<'_>) -> Result<Sharing, StringsError> {
    let (mut firsts, mut numbers, mut known) = (Vec::new(), Vec::new(), HashMap::new());
    reserve(&mut numbers, |numbers| numbers.try_reserve_exact(addresses.len()))?;
    for (place, &address) in addresses.iter().enumerate() {
        if place % STRETCH == 0 {
            task.check()?;
            reserve(&mut firsts, |firsts| firsts.try_reserve(STRETCH))?;
            reserve(&mut known, |known| known.try_reserve(STRETCH))?;
        }
        numbers.push(if block_pool::home_of(ptr::without_provenance::<u8>(address)).is_none() {
            u32::MAX
        } else {
            let new = u32::try_from(firsts.len()).ok().filter(|&new| new != u32::MAX);
            let new = new.ok_or(StringsError::NoMemory)?;
            *known.entry(address).or_insert_with(|| {
                firsts.push(place);
                new
            })
        });
    }
    Ok((Large::new(firsts), Large::new(numbers)))
}

fn reserve<C>(
    collection: &mut C,
    reserve: impl FnOnce(&mut C) -> Result<(), TryReserveError>,
) -> Result<(), StringsError> {
    reserve(collection).map_err(|_| StringsError::NoMemory)
}

/// The strings, each with a reference, so that their addresses are not reused meanwhile.
fn held<'py>(strings: &Bound<'py, PyAny>, yielder: &mut Yielder) -> PyResult<Refs<Bound<'py, PyString>>> {
    Refs::collect(strings, yielder, |_, string| Ok(string.cast_into()?))
}

fn addresses(
    strings: &[Bound<'_, PyString>],
    py: Python<'_>,
    yielder: &mut Yielder,
) -> PyResult<Large<Vec<usize>>> {
    let mut addresses = Large::new(Vec::new());
    for string in strings {
        yielder.tick(py)?;
        large::reserve(&mut addresses, 1)?;
        addresses.push(string.as_ptr().addr());
    }
    Ok(addresses)
}

/// How many blocks are in use, how many there are, and how often the memory of one was offered to the system.
#[pyfunction]
pub(super) fn blocks(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let (taken, there, offered) = block_pool::usage();
    let ints = [object::size(py, taken)?, object::size(py, there)?, object::size(py, offered)?];
    tuple(py, ints.map(Bound::into_any))
}
