//! How the map is made from what is known in the end.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::knowledge::{At, Far};
use super::xbar::{Stage, XbarState};
use super::{ExploreError, Explorer};
use crate::Mac;
use crate::map::{Cable, Contested, Host, Map, Xbar};

impl Explorer {
    /// The map of what is known now.
    pub(super) fn map(&self) -> Result<Map, ExploreError> {
        let disbelieved = self.disbelieved_xbars();
        let numbers = self.numbering(&disbelieved)?;
        let place = |at: At| self.place(&numbers, at);
        let contested = self.contested_hosts();
        let mut hosts = Vec::new();
        for (index, known) in self.known.hosts().iter().enumerate() {
            if contested.binary_search(&(index as u32)).is_ok() {
                continue;
            }
            let at = known.at.and_then(place);
            if index == 0 || at.is_some() || self.direct == Some(index as u32) {
                hosts.push(Host { at, ..known.host });
            }
        }
        hosts.sort_by_key(|host| Reverse(host.rank()));

        let mut xbars = vec![None; numbers.len()];
        let mut cables = Vec::new();
        for (&node, &number) in &numbers {
            let xbar = self.known.xbar(node);
            xbars[number as usize] = Some(self.describe(xbar)?);
            for (delta, far) in xbar.fars() {
                let Far::Xbar(far) = self.known.far_root(far) else { continue };
                if let (Some(here), Some(there)) = (place(At { node, delta }), place(far)) {
                    cables.push(Cable::new(here, there));
                }
            }
        }
        cables.sort_unstable();
        cables.dedup();
        let mut contested = self.contested_ports(&contested, |known| known.at.and_then(place));
        // The port leads nowhere, unless another way showed what is there.
        let leads_nowhere = |at: &At| match self.known.xbar(at.node).far(at.delta) {
            Some(Far::Host(_)) => false,
            Some(Far::Xbar(far)) => place(far).is_none(),
            None => true,
        };
        let ports = self.disbelieved_ports(&disbelieved).into_iter().filter(leads_nowhere).filter_map(place);
        contested.extend(ports.map(|at| Contested { mac: Mac::NOBODY, at }));
        contested.sort_unstable();
        contested.dedup();
        let xbars = xbars.into_iter().flatten().collect();
        Ok(Map { hosts, xbars, cables, contested, ..Map::default() })
    }

    /// The delta of the port that a map numbers 0: a plain xbar's first port in use.
    pub(super) fn first_port(&self, xbar: &XbarState) -> i16 {
        xbar.tag.map_or_else(|| xbar.span().0, |tag| -tag.base)
    }

    fn describe(&self, xbar: &XbarState) -> Result<Xbar, ExploreError> {
        if let Some(tag) = xbar.tag {
            return Ok(Xbar { ports: tag.ports, tag: Some(tag.tag), ports_known: true });
        }
        let ports = self.settings.plain_ports;
        let (first, last) = xbar.span();
        let width = last - first + 1;
        if width > i16::from(ports) {
            return Err(ExploreError::TOO_WIDE);
        }
        Ok(Xbar { ports, tag: None, ports_known: width == i16::from(ports) })
    }

    /// The resolved xbars that are believed, numbered as a walk from our own cable meets them.
    pub(super) fn numbering(&self, disbelieved: &BTreeSet<u32>) -> Result<BTreeMap<u32, u32>, ExploreError> {
        let mut numbers = BTreeMap::new();
        let mut walk = VecDeque::new();
        if let Some(at) = self.known.hosts()[0].at {
            walk.push_back(self.known.root(at).node);
        }
        numbers.extend(walk.front().map(|&node| (node, 0)));
        while let Some(node) = walk.pop_front() {
            for next in self.known.neighbours(node).map(|at| at.node) {
                let is_new = self.known.xbar(next).stage == Stage::Resolved
                    && !numbers.contains_key(&next)
                    && !disbelieved.contains(&next);
                if is_new {
                    numbers.insert(next, numbers.len() as u32);
                    walk.push_back(next);
                }
            }
        }
        if numbers.len() > usize::from(u16::MAX) {
            return Err(ExploreError::TooManyXbars);
        }
        Ok(numbers)
    }
}
