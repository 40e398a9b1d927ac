//! A topology without its dead cables, numbered as before.

use std::collections::BTreeSet;

use mapper_proto::map::PortRef;

use super::{Attachment, Far, Topology};

impl Topology {
    /// This topology without the cables in these ports. A cable may be named by either of its ends;
    /// ports that hold no cable are ignored.
    ///
    /// Hosts, xbars and channels keep their numbers, so that routes of the whole topology can be
    /// read here, too. A dead channel leads nowhere ([`Self::far`]) and [`Self::is_dead`]. A host
    /// whose own cable is dead is cabled to nothing, but still counts among [`Self::hosts_of`] its
    /// xbar.
    pub fn without(&self, dead: &BTreeSet<PortRef>) -> Self {
        let mut cut = self.clone();
        cut.dead.resize(self.channel_count(), false);
        for &port in dead {
            match self.far(port) {
                Far::Nothing => {}
                Far::Host(host) => {
                    cut.attachments[host as usize] = Attachment::Nothing;
                    cut.empty_port(port);
                }
                Far::Channel(channel) => {
                    for channel in [channel, self.reverse(channel)] {
                        cut.dead[channel as usize] = true;
                        cut.empty_port(self.tail(channel));
                    }
                }
            }
        }
        cut.component = cut.components();
        cut
    }

    /// Whether a channel's cable was taken out by [`Self::without`].
    pub fn is_dead(&self, channel: u32) -> bool {
        self.dead.get(channel as usize).copied().unwrap_or_default()
    }

    /// Lets a port that holds a cable lead nowhere.
    fn empty_port(&mut self, port: PortRef) {
        let xbar = port.xbar as usize;
        let at = self.port_base[xbar] + u32::from(port.port - self.first_port[xbar]);
        self.ports[at as usize] = Far::Nothing;
    }
}
