//! [`Inner`]: the inner nodes of FPTree: a B+-tree in DRAM, from separators to leaves.
//!
//! A node with `n` separators has `n + 1` children. A leaf has the keys from the separator before it on, up to the one after.

/// Most children of a node.
const CHILDREN_MAX: usize = 64;

struct InnerNode {
    /// Separators, one after the other.
    keys: Vec<u64>,
    /// Nodes, or leaves in the lowest level.
    children: Vec<u32>,
}

/// See the module.
pub(super) struct Inner {
    key_words: usize,
    nodes: Vec<InnerNode>,
    free: Vec<u32>,
    root: u32,
    /// Levels of inner nodes, one at least.
    levels: usize,
}

/// A way down: nodes, and which child was taken of each.
type Path = Vec<(u32, usize)>;

impl Inner {
    /// The tree over leaves in their order, each with its first key; that of the first one does not matter.
    pub(super) fn build(key_words: usize, leaves: &[(Vec<u64>, u32)]) -> Self {
        let mut inner = Self { key_words, nodes: Vec::new(), free: Vec::new(), root: 0, levels: 0 };
        let mut level: Vec<(Vec<u64>, u32)> = leaves.to_vec();
        loop {
            // Three quarters, so that there is room.
            let chunks = level.chunks(CHILDREN_MAX * 3 / 4);
            let mut above = Vec::new();
            for children in chunks {
                let node = InnerNode {
                    keys: children[1..].iter().flat_map(|(key, _)| key.iter().copied()).collect(),
                    children: children.iter().map(|(_, child)| *child).collect(),
                };
                above.push((children[0].0.clone(), inner.nodes.len() as u32));
                inner.nodes.push(node);
            }
            inner.levels += 1;
            if above.len() <= 1 {
                inner.root = above.first().map_or(0, |(_, node)| *node);
                return inner;
            }
            level = above;
        }
    }

    /// Which child has a key.
    #[inline]
    fn child_of(&self, node: u32, key: &[u64]) -> usize {
        let node = &self.nodes[node as usize];
        let words = self.key_words;
        let (mut low, mut high) = (0, node.children.len() - 1);
        while low < high {
            let middle = low.midpoint(high);
            if node.keys[middle * words..][..words] <= *key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The leaf that has a key, if anybody has.
    #[inline]
    pub(super) fn find(&self, key: &[u64]) -> u32 {
        let mut node = self.root;
        for _ in 0..self.levels {
            node = self.nodes[node as usize].children[self.child_of(node, key)];
        }
        node
    }

    fn path(&self, key: &[u64]) -> Path {
        let (mut node, mut path) = (self.root, Vec::new());
        for _ in 0..self.levels {
            let child = self.child_of(node, key);
            path.push((node, child));
            node = self.nodes[node as usize].children[child];
        }
        path
    }

    /// Enters a new leaf, which has the keys from `separator` on up to the next separator.
    pub(super) fn insert(&mut self, separator: &[u64], leaf: u32) {
        let words = self.key_words;
        let (mut key, mut child) = (separator.to_vec(), leaf);
        for (number, at) in self.path(separator).into_iter().rev() {
            let node = &mut self.nodes[number as usize];
            node.keys.splice(at * words..at * words, key.iter().copied());
            node.children.insert(at + 1, child);
            if node.children.len() <= CHILDREN_MAX {
                return;
            }
            let half = node.children.len() / 2;
            let children = node.children.split_off(half);
            let mut keys = node.keys.split_off((half - 1) * words);
            key = keys.drain(..words).collect();
            child = self.add(InnerNode { keys, children });
        }
        let root = InnerNode { keys: key, children: vec![self.root, child] };
        self.root = self.add(root);
        self.levels += 1;
    }

    fn add(&mut self, node: InnerNode) -> u32 {
        if let Some(number) = self.free.pop() {
            self.nodes[number as usize] = node;
            return number;
        }
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    /// Forgets the leaf that has a key; its keys are its neighbours' then. It is not the only one.
    pub(super) fn remove(&mut self, key: &[u64]) {
        let words = self.key_words;
        for (number, at) in self.path(key).into_iter().rev() {
            let node = &mut self.nodes[number as usize];
            node.children.remove(at);
            if !node.keys.is_empty() {
                let gone = at.saturating_sub(1) * words;
                node.keys.drain(gone..gone + words);
            }
            if !node.children.is_empty() {
                return;
            }
            self.free.push(number);
        }
    }

    /// Memory of all nodes, by what they have room for.
    pub(super) fn dram_bytes(&self) -> u64 {
        let node = |node: &InnerNode| {
            size_of::<InnerNode>() + node.keys.capacity() * 8 + node.children.capacity() * 4
        };
        self.nodes.iter().map(node).sum::<usize>() as u64
    }
}
