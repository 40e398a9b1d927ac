//! First fit: each route goes into the lowest layer that stays free of circles with it.

use super::layer::{Dependency, DependencyNumbers, Layer};

/// Layers that are being filled. There are as many as routes have needed so far.
pub(super) struct FirstFit<'a> {
    numbers: &'a DependencyNumbers<'a>,
    /// All layers that have been used at any time. They are kept to be filled again.
    layers: Vec<Layer>,
    used: usize,
}

impl<'a> FirstFit<'a> {
    /// No layer yet.
    pub(super) fn new(numbers: &'a DependencyNumbers<'a>) -> Self {
        Self { numbers, layers: Vec::new(), used: 0 }
    }

    /// Empties all layers.
    pub(super) fn clear(&mut self) {
        self.layers.iter_mut().for_each(Layer::clear);
        self.used = 0;
    }

    /// How many layers are used.
    pub(super) fn count(&self) -> usize {
        self.used
    }

    /// Puts routes that must share a layer into the lowest one that has room, or into a new one, and tells which.
    /// They are given by all dependencies that they make, and must close no circle by themselves.
    pub(super) fn place(&mut self, dependencies: &[Dependency]) -> usize {
        let layers = &mut self.layers[..self.used];
        if let Some(layer) = layers.iter_mut().position(|layer| layer.add(dependencies)) {
            return layer;
        }
        if self.layers.len() == self.used {
            self.layers.push(Layer::new(self.numbers));
        }
        self.used += 1;
        let fits = self.layers[self.used - 1].add(dependencies);
        debug_assert!(fits, "routes close a circle by themselves");
        self.used - 1
    }

    /// Puts routes into the layer of this number, which is used from now on. Returns false if it has no room
    /// for them.
    pub(super) fn add(&mut self, layer: usize, dependencies: &[Dependency]) -> bool {
        while self.layers.len() <= layer {
            self.layers.push(Layer::new(self.numbers));
        }
        self.used = self.used.max(layer + 1);
        self.layers[layer].add(dependencies)
    }

    /// Moves routes from one layer to another. Returns false if that has no room for them; they stay then.
    pub(super) fn transfer(&mut self, from: usize, to: usize, dependencies: &[Dependency]) -> bool {
        let fits = self.add(to, dependencies);
        if fits {
            self.layers[from].remove(dependencies);
        }
        fits
    }

    /// How many channels searches have looked at so far.
    pub(super) fn work(&self) -> u64 {
        self.layers.iter().map(Layer::work).sum()
    }
}
