//! The layers in which frames may be while tables change.

use crate::tables::Layers;

/// Layers by their numbers, as frames carry them, a bit each.
pub(super) type LayerSet = u16;

/// The layers of frames between each two xbars until hosts are told new ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameLayers<'a> {
    /// The layers that hosts were told to use; `None` if they may use any.
    told: Option<&'a [Layers]>,
    /// All layers in which there may be frames that have to be looked at.
    all: LayerSet,
}

impl<'a> FrameLayers<'a> {
    pub(super) fn new(new: &Layers, told: Option<&'a [Layers]>) -> Self {
        let numbers = |layers: &Layers| {
            let last = layers.first.saturating_add(layers.highest());
            (layers.first..=last).fold(0, |set, layer| set | bit(layer))
        };
        let all = told.map_or_else(
            // Frames that may be in any layer make the same dependencies in each of them.
            || bit(new.first),
            |told| told.iter().fold(0, |set, of| set | numbers(of)),
        );
        Self { told, all }
    }

    /// How many layers there are, counted from number 0.
    pub(super) const fn count(&self) -> usize {
        (LayerSet::BITS - self.all.leading_zeros()) as usize
    }

    /// The layers of frames between two xbars.
    pub(super) fn of(&self, source: u32, destination: u32) -> LayerSet {
        self.told.map_or(self.all, |told| {
            told.iter().fold(0, |set, of| set | bit(of.service_level(source, destination)))
        })
    }
}

/// The set of one layer. No layer has a number above 15 ([`Layers::MAX`]).
const fn bit(layer: u8) -> LayerSet {
    1 << (layer & 0xF)
}
