//! The wanted fields, as a tree of keys, so that one pass over a record finds them all.

/// The most keys that a path may have, because each is a level of recursion.
pub const MAX_KEYS: usize = 64;

/// Paths to fields: each is the keys that lead to the field, from the outermost one.
#[derive(Debug, Clone)]
pub struct Paths {
    pub(super) root: Node,
    pub(super) count: usize,
}

/// A place in a record that is wanted, or that leads to one.
#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    /// The numbers of the paths that end here.
    pub(super) paths: Vec<usize>,
    /// What is below this place.
    pub(super) keys: Vec<(String, Self)>,
}

impl Paths {
    /// Returns `None` if a path has no keys, or more than [`MAX_KEYS`].
    pub fn new<K: AsRef<str>, P: AsRef<[K]>>(paths: &[P]) -> Option<Self> {
        let mut root = Node::default();
        for (number, path) in paths.iter().enumerate() {
            let path = path.as_ref();
            if path.is_empty() || path.len() > MAX_KEYS {
                return None;
            }
            let node = path.iter().fold(&mut root, |node, key| node.below(key.as_ref()));
            node.paths.push(number);
        }
        Some(Self { root, count: paths.len() })
    }

    /// The number of paths.
    pub fn count(&self) -> usize {
        self.count
    }
}

impl Node {
    /// The node below a key, which is made if there is none.
    fn below(&mut self, key: &str) -> &mut Self {
        let place = self.keys.iter().position(|(known, _)| known == key).unwrap_or_else(|| {
            self.keys.push((key.to_owned(), Self::default()));
            self.keys.len() - 1
        });
        &mut self.keys[place].1
    }

    /// Calls `visit` with the number of each path that ends here or below.
    pub(super) fn each(&self, visit: &mut impl FnMut(usize)) {
        self.paths.iter().for_each(|&path| visit(path));
        self.keys.iter().for_each(|(_, node)| node.each(visit));
    }
}
