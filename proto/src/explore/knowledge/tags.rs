//! Which xbars showed which tag.

use super::{At, Fact, Knowledge};
use crate::explore::ExploreError;
use crate::explore::xbar::Tag;
use crate::wire::Stamp;

impl Knowledge {
    /// The port of the xbar with this stamp's tag by which the stamped frame came in, if that
    /// xbar is known already.
    pub(in crate::explore) fn stamped_port(&self, stamp: &Stamp) -> Option<At> {
        self.port_of(*self.tags.get(&stamp.tag)?.first()?, stamp.arrival)
    }

    /// The port with this number of the tagged xbar that `node` is a sight of.
    fn port_of(&self, node: u32, number: u8) -> Option<At> {
        let root = self.root(At { node, delta: 0 }).node;
        let base = self.xbar(root).tag.as_ref()?.base;
        Some(At { node: root, delta: i16::from(number) - base })
    }

    /// The number of a port of a tagged xbar, and the tag.
    pub(in crate::explore) fn numbered(&self, at: At) -> Option<(u64, u8)> {
        let at = self.root(at);
        let tag = self.xbar(at.node).tag.as_ref()?;
        Some((tag.tag, u8::try_from(tag.base + at.delta).ok()?))
    }

    /// All ports that may be the one by which the stamped frame came in: one for each xbar that
    /// showed this tag and port count, in the order in which they did.
    pub(in crate::explore) fn claimed_ports(&self, stamp: &Stamp) -> Vec<At> {
        let nodes = self.tags.get(&stamp.tag).into_iter().flatten();
        let ports = nodes.filter_map(|&node| self.port_of(node, stamp.arrival));
        ports.filter(|at| self.xbar(at.node).tag.is_some_and(|tag| tag.ports == stamp.ports)).collect()
    }

    /// The xbars that share a tag with others: the roots of each such tag, oldest first.
    pub(in crate::explore) fn shared_tags(&self) -> impl Iterator<Item = (u64, Vec<u32>)> + '_ {
        self.tags.iter().filter(|(_, nodes)| nodes.len() > 1).filter_map(|(&tag, nodes)| {
            let mut roots: Vec<u32> =
                nodes.iter().map(|&node| self.root(At { node, delta: 0 }).node).collect();
            roots.sort_unstable();
            roots.dedup();
            (roots.len() > 1).then_some((tag, roots))
        })
    }

    /// Learns from the stamp of a frame that came in by the port `at`.
    pub(in crate::explore) fn learn_stamp(&mut self, at: At, stamp: &Stamp) -> Result<(), ExploreError> {
        if let Some(known) = self.stamped_port(stamp) {
            let tag = self.xbar_mut(known.node).tag.as_mut();
            if tag.is_some_and(|tag| tag.ports != stamp.ports) {
                return Err(ExploreError::Contradiction("two port counts under one tag"));
            }
            self.facts.push(Fact::Same(at, known));
            self.settle()?;
            self.xbar_mut(known.node).want_carriers(stamp);
            let root = self.root(at).node;
            self.touched.push(root);
            Ok(())
        } else {
            self.adopt_stamp(at, stamp)
        }
    }

    /// Learns that a frame that came in by the port `at` was stamped by this very xbar, whichever others show
    /// its tag.
    pub(in crate::explore) fn adopt_stamp(&mut self, at: At, stamp: &Stamp) -> Result<(), ExploreError> {
        let at = self.root(at);
        let tag = Tag { tag: stamp.tag, ports: stamp.ports, base: i16::from(stamp.arrival) - at.delta };
        let xbar = self.xbar_mut(at.node);
        match xbar.tag {
            None => {
                xbar.set_tag(tag)?;
                self.tags.entry(stamp.tag).or_default().push(at.node);
            }
            Some(known) if known == tag => {}
            Some(_) => return Err(ExploreError::Contradiction("two tags on one xbar")),
        }
        self.xbar_mut(at.node).want_carriers(stamp);
        self.touched.push(at.node);
        Ok(())
    }

    /// Forgets which tag was shown by the nodes that `is_gone` names.
    pub(in crate::explore) fn forget_tags(&mut self, is_gone: impl Fn(&Self, u32) -> bool) {
        let mut tags = std::mem::take(&mut self.tags);
        tags.retain(|_, nodes| {
            nodes.retain(|&node| !is_gone(self, node));
            !nodes.is_empty()
        });
        self.tags = tags;
    }

    /// Takes over the tag of an xbar that is known from an earlier map.
    pub(in crate::explore) fn recall_tag(&mut self, node: u32, tag: Tag) -> Result<(), ExploreError> {
        self.tags.entry(tag.tag).or_default().push(node);
        self.xbar_mut(node).set_tag(tag)
    }
}
