//! What can be asked about strings (which kinds there are, what they keep alive), and how they are detached.

use std::collections::{HashMap, HashSet, TryReserveError};
use std::ptr;

use offlock_core::Task;
use offlock_core::text::Memory;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use super::failed::Failed;
use super::hook;
use super::long::from_utf8;
use super::pool::{self, BLOCK};
use super::view;
use crate::bulk::{self, Bulk, Held};
use crate::filling::{Container, Filling};
use crate::ints;
use crate::objects::{Int, Name, Text, name, tuple};
use crate::pace::Pace;
use crate::region::{Operation, Region};

/// Lets strings be built in blocks from now on.
#[pyfunction]
pub(super) fn enable_blocks(py: Python<'_>) -> PyResult<()> {
    hook::install(py)
}

/// Why each kind is not available; `None` for one that is.
#[pyfunction]
pub(super) fn unavailable(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let reason = |kind: &'static Name, reason: Option<String>| {
        let reason = reason.map(Text).into_bound_py_any(py)?;
        tuple(py, [kind.into_bound_py_any(py)?, reason])
    };
    let block = reason(name!("block"), hook::unavailable(py)?)?;
    let view = reason(name!("view"), view::unavailable(py)?)?;
    tuple(py, [reason(name!("str"), None)?, block, view])
}

/// The class of views.
#[pyfunction]
pub(super) fn view_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    view::class(py)
}

/// The bytes that these strings keep alive, with what they share.
#[pyfunction]
pub(super) fn retained(strings: &Bound<'_, PyAny>) -> PyResult<Int> {
    let (py, mut pace) = (strings.py(), Pace::giving_way());
    let strings = held(strings, &mut pace)?;
    let addresses = addresses(&strings, py, &mut pace)?;
    let (plain, mut bytes) = in_region(py, addresses.len(), |task| {
        let (mut plain, mut blocks, mut memories) = (HashMap::new(), HashSet::new(), HashSet::new());
        let mut bytes = 0;
        for (number, &address) in addresses.iter().enumerate() {
            if number % STRETCH == 0 {
                task.check()?;
                reserve(&mut plain, |plain| plain.try_reserve(STRETCH))?;
            }
            match pool::home_of(ptr::without_provenance::<u8>(address)) {
                Some(block) if blocks.insert(block) => {
                    bytes += BLOCK;
                    // SAFETY: the string is held, and keeps its block alive, and that the characters.
                    let characters = unsafe { pool::characters_of(block) };
                    let new = characters.filter(|memory| memories.insert(ptr::from_ref(*memory)));
                    bytes += new.map_or(0, Memory::bytes);
                }
                Some(_) => {}
                None => {
                    plain.entry(address).or_insert(number);
                }
            }
        }
        Ok((Bulk::new(plain.into_values().collect::<Vec<_>>()), bytes))
    })?;
    for &number in plain.iter() {
        pace.keep(py)?;
        bytes += strings[number].call_method0(name!("__sizeof__"))?.extract::<usize>()?;
    }
    Ok(Int(bytes))
}

/// The same strings as a list or tuple, those that share memory with others replaced by exact ones that do not. What was
/// one object stays one.
#[pyfunction]
pub(super) fn compact<'py>(strings: &Bound<'py, PyAny>, into: Container) -> PyResult<Bound<'py, PyAny>> {
    let (py, mut pace) = (strings.py(), Pace::giving_way());
    let strings = held(strings, &mut pace)?;
    let addresses = addresses(&strings, py, &mut pace)?;
    let (firsts, numbers) = in_region(py, addresses.len(), |task| sharing(&addresses, task))?;
    let mut detached = Held::new();
    for &first in firsts.iter() {
        let text = strings[first].to_str()?;
        pace.keep_bytes(py, text.len())?;
        detached.push(from_utf8(py, text)?)?;
    }
    // Some may be of a class of the program's own, and hold whatever that holds.
    let mut filling = Filling::new(py, into, strings.len())?.of_any();
    for (string, &number) in strings.iter().zip(numbers.iter()) {
        pace.keep(py)?;
        filling.push(detached.get(number as usize).unwrap_or(string).clone());
    }
    Ok(filling.finish())
}

static LOOK: Operation = Operation { name: "strings.look", break_even: 16 << 10 };

/// Strings between two looks at whether to stop.
const STRETCH: usize = 1 << 12;

fn in_region<T: Send>(
    py: Python<'_>,
    strings: usize,
    work: impl FnOnce(&Task<'_>) -> Result<T, Failed> + Send,
) -> PyResult<T> {
    Region::new(&LOOK, strings).run(py, work)
}

type Sharing = (Bulk<Vec<usize>>, Bulk<Vec<u32>>);

/// Which strings share memory with others: the first of each, and for every string which one of those it is; more than
/// there are for one that shares nothing.
fn sharing(addresses: &[usize], task: &Task<'_>) -> Result<Sharing, Failed> {
    let (mut firsts, mut numbers, mut known) = (Vec::new(), Vec::new(), HashMap::new());
    reserve(&mut numbers, |numbers| numbers.try_reserve_exact(addresses.len()))?;
    for (place, &address) in addresses.iter().enumerate() {
        if place % STRETCH == 0 {
            task.check()?;
            reserve(&mut firsts, |firsts| firsts.try_reserve(STRETCH))?;
            reserve(&mut known, |known| known.try_reserve(STRETCH))?;
        }
        numbers.push(if pool::home_of(ptr::without_provenance::<u8>(address)).is_none() {
            u32::MAX
        } else {
            let new = u32::try_from(firsts.len()).ok().filter(|&new| new != u32::MAX);
            let new = new.ok_or(Failed::NoMemory)?;
            *known.entry(address).or_insert_with(|| {
                firsts.push(place);
                new
            })
        });
    }
    Ok((Bulk::new(firsts), Bulk::new(numbers)))
}

fn reserve<C>(
    collection: &mut C,
    reserve: impl FnOnce(&mut C) -> Result<(), TryReserveError>,
) -> Result<(), Failed> {
    reserve(collection).map_err(|_| Failed::NoMemory)
}

/// The strings, each with a reference: their addresses are not used again meanwhile.
fn held<'py>(strings: &Bound<'py, PyAny>, pace: &mut Pace) -> PyResult<Held<Bound<'py, PyString>>> {
    Held::collect(strings, pace, |_, string| Ok(string.cast_into()?))
}

fn addresses(strings: &[Bound<'_, PyString>], py: Python<'_>, pace: &mut Pace) -> PyResult<Bulk<Vec<usize>>> {
    let mut addresses = Bulk::new(Vec::new());
    for string in strings {
        pace.keep(py)?;
        bulk::reserve(&mut addresses, 1)?;
        addresses.push(string.as_ptr().addr());
    }
    Ok(addresses)
}

/// How many blocks are taken, how many there are, and how often the memory of one was offered to the system.
#[pyfunction]
pub(super) fn blocks(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let (taken, there, offered) = pool::usage();
    let ints = [ints::int(py, taken)?, ints::int(py, there)?, ints::int(py, offered)?];
    tuple(py, ints.map(Bound::into_any))
}
