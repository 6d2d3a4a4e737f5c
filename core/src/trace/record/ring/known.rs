//! What the numbers in a trace's events stand for, for as long as events of a ring may mention them.

use std::collections::{HashMap, HashSet};

use super::standing::Standing;
use crate::trace::format::code::CodeDefinition;
use crate::trace::format::definition::{Definition, Stand};
use crate::trace::record::code::code_table;
use crate::trace::record::registry::registry;

/// The size of an entry of the tables apart from its text, in bytes, roughly.
pub(super) const ENTRY: usize = 96;

/// What numbers stand for.
#[derive(Default)]
pub(super) struct Known {
    pub(super) names: HashMap<u32, String>,
    pub(super) locks: HashMap<u32, String>,
    pub(super) threads: HashMap<u32, (String, Stand)>,
    pub(super) code: HashMap<(CodeKind, u32), CodeDefinition>,
    /// Their size in bytes, roughly.
    pub(super) size: usize,
}

/// Numbers of names and of code.
#[derive(Default)]
pub(super) struct Numbers {
    pub(super) names: HashSet<u32>,
    pub(super) code: HashSet<(CodeKind, u32)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum CodeKind {
    File,
    Function,
    Frame,
}

impl Known {
    pub(super) fn define(&mut self, definition: Definition) {
        let text = match &definition {
            Definition::Name { text: name, .. }
            | Definition::Thread { name, .. }
            | Definition::Lock { name, .. } => name.len(),
        };
        self.size += ENTRY + text;
        match definition {
            Definition::Name { id, text } => drop(self.names.insert(id, text)),
            Definition::Lock { id, name } => drop(self.locks.insert(id, name)),
            // As in a file, the first relation to the lock counts, and the last name.
            Definition::Thread { id, name, stand } => {
                let thread = self.threads.entry(id).or_insert_with(|| (String::new(), stand));
                if !name.is_empty() {
                    thread.0 = name;
                }
            }
        }
    }

    pub(super) fn define_code(&mut self, definition: CodeDefinition) {
        let text = match &definition {
            CodeDefinition::File { path: text, .. } | CodeDefinition::Function { name: text, .. } => {
                text.len()
            }
            CodeDefinition::Frame { .. } => 0,
        };
        self.size += ENTRY + text;
        self.code.insert(key_of(&definition), definition);
    }

    pub(super) fn forget_thread(&mut self, id: u32) {
        if let Some((name, _)) = self.threads.remove(&id) {
            self.size = self.size.saturating_sub(ENTRY + name.len());
        }
    }

    pub(super) fn forget(&mut self, numbers: &Numbers) {
        let all = std::mem::take(self);
        all.threads
            .into_iter()
            .for_each(|(id, (name, stand))| self.define(Definition::Thread { id, name, stand }));
        all.locks.into_iter().for_each(|(id, name)| self.define(Definition::Lock { id, name }));
        let names = all.names.into_iter().filter(|(id, _)| !numbers.names.contains(id));
        names.for_each(|(id, text)| self.define(Definition::Name { id, text }));
        let code = all.code.into_iter().filter(|(key, _)| !numbers.code.contains(key));
        code.for_each(|(_, definition)| self.define_code(definition));
    }

    /// Adds the numbers that a stack needs, up to its outermost frame.
    pub(super) fn mark_stack(&self, stack: u32, needed: &mut HashSet<(CodeKind, u32)>) {
        let mut inner = stack;
        while needed.insert((CodeKind::Frame, inner)) {
            let Some(CodeDefinition::Frame { caller, function, .. }) =
                self.code.get(&(CodeKind::Frame, inner))
            else {
                return;
            };
            needed.insert((CodeKind::Function, *function));
            let of_function = self.code.get(&(CodeKind::Function, *function));
            if let Some(CodeDefinition::Function { file, .. }) = of_function {
                needed.insert((CodeKind::File, *file));
            }
            inner = *caller;
        }
    }

    pub(super) fn definitions(&self, standing: &HashMap<u32, Standing>) -> Vec<Definition> {
        let names = self.names.iter().map(|(id, text)| Definition::Name { id: *id, text: text.clone() });
        let locks = self.locks.iter().map(|(id, name)| Definition::Lock { id: *id, name: name.clone() });
        let threads = self.threads.iter().map(|(id, (name, first))| {
            let stand = standing.get(id).map_or(*first, |standing| standing.stand);
            Definition::Thread { id: *id, name: name.clone(), stand }
        });
        names.chain(locks).chain(threads).collect()
    }

    pub(super) fn code(&self) -> Vec<CodeDefinition> {
        self.code.values().cloned().collect()
    }
}

fn key_of(definition: &CodeDefinition) -> (CodeKind, u32) {
    match definition {
        CodeDefinition::File { id, .. } => (CodeKind::File, *id),
        CodeDefinition::Function { id, .. } => (CodeKind::Function, *id),
        CodeDefinition::Frame { id, .. } => (CodeKind::Frame, *id),
    }
}

impl Numbers {
    /// Those that the recorder's tables have, so that events may mention them again.
    pub(super) fn of_recorder() -> Self {
        let names = registry().definitions().into_iter().filter_map(|definition| match definition {
            Definition::Name { id, .. } => Some(id),
            _ => None,
        });
        Self { names: names.collect(), code: code_table().definitions().iter().map(key_of).collect() }
    }
}
