//! What forwarding between ports needs of the kernel's settings.

use std::collections::BTreeMap;

use super::{Of, Setting, SettingFamily, SettingsError};
use crate::link::interface::Interface;

/// What the settings are needed for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardingNeeds {
    /// The numbers and names of the fabric's ports.
    pub ports: BTreeMap<u32, String>,
    /// The number of the tap interface, which carries what the kernel does not; `None` without one.
    pub tap: Option<u32>,
    /// Whether packets go on from one port to another, as at a crossbar.
    pub forwards: bool,
    /// Whether the kernel can forward IPv6 by a single interface
    /// ([`Abilities`](crate::kernel::Abilities::force_forwarding)).
    pub force_forwarding: bool,
}

/// A setting that is not as it is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lacking {
    /// The setting, as `sysctl` takes it.
    pub setting: String,
    /// What it is now.
    pub is: i32,
    /// What is needed.
    pub needed: i32,
}

/// Settings of which nothing was changed.
struct Unchanged;

impl Before for Unchanged {
    fn before(&self, setting: &Setting) -> Result<Option<i32>, SettingsError> {
        setting.read()
    }
}

/// A setting and the value that it is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) setting: Setting,
    pub(super) value: i32,
    /// Whether a setting before it in the list changes it by the way, so that it is to be put back with that one
    /// even if it has this value now.
    pub(super) is_held: bool,
}

/// What a setting was before this program changed it.
pub(super) trait Before {
    /// The value before; the one of now if it was not changed, and `None` if there is no such setting.
    fn before(&self, setting: &Setting) -> Result<Option<i32>, SettingsError>;
}

impl ForwardingNeeds {
    /// The settings that are not as they are needed, of those that this kernel has. Nothing is changed.
    ///
    /// # Errors
    /// If the kernel does not tell its interfaces or a setting.
    pub fn lacking(&self) -> Result<Vec<Lacking>, SettingsError> {
        let all = Interface::all().map_err(SettingsError::Interfaces)?;
        let interfaces = all.into_iter().map(|it| (it.index, it.name)).collect();
        let mut lacking = Vec::new();
        for Wanted { setting, value: needed, .. } in self.wanted(&interfaces, &Unchanged)? {
            if let Some(is) = setting.read()?.filter(|&is| is != needed) {
                lacking.push(Lacking { setting: setting.to_string(), is, needed });
            }
        }
        Ok(lacking)
    }

    /// The settings that are needed, in the order in which they are to be set. `interfaces` are all of this
    /// machine.
    pub(super) fn wanted(
        &self,
        interfaces: &BTreeMap<u32, String>,
        before: &impl Before,
    ) -> Result<Vec<Wanted>, SettingsError> {
        let mut wanted = self.reverse_path_filter(interfaces, before)?;
        // Flows are spread over several routes by their ports too, not by addresses alone.
        for family in [SettingFamily::V4, SettingFamily::V6] {
            wanted.push(plain(Setting::new(family, Of::Machine, "fib_multipath_hash_policy"), 1));
        }
        // Else the kernel tells each route anew that leads to a nexthop which is replaced, and walks all routes of
        // IPv4 to find them: each time, however many nexthops are replaced.
        let tells_routes = Setting::new(SettingFamily::V4, Of::Machine, "nexthop_compat_mode");
        if before.before(&tells_routes)?.is_some() {
            wanted.push(plain(tells_routes, 0));
        }
        for (&index, name) in &self.ports {
            let of = || Of::Interface { index, name: name.clone() };
            // Without IPv6 a port takes no segments.
            wanted.push(plain(Setting::new(SettingFamily::V6, of(), "disable_ipv6"), 0));
            if self.forwards {
                wanted.push(plain(Setting::new(SettingFamily::V4, of(), "forwarding"), 1));
                if self.force_forwarding {
                    wanted.push(plain(Setting::new(SettingFamily::V6, of(), "force_forwarding"), 1));
                }
            }
        }
        if self.forwards && !self.force_forwarding {
            wanted.extend(self.forwarding_of_all(others(interfaces, &self.ports), before)?);
        }
        Ok(wanted)
    }

    /// What keeps packets from being dropped because the way back to their source is by another port, or by a port where they
    /// came by the tap interface.
    ///
    /// The kernel takes the larger value of `all` and the interface. So where `all` is not 0, each other interface is
    /// given what counts for it now, and then `all` is 0, which changes nothing for them. What those that come later begin
    /// with is set first, as the kernel gives it to all whose own was never set, too. An address on the ports would
    /// not do instead: the strict filter wants the way back by the same port, whatever addresses there are.
    fn reverse_path_filter(
        &self,
        interfaces: &BTreeMap<u32, String>,
        before: &impl Before,
    ) -> Result<Vec<Wanted>, SettingsError> {
        let mut wanted = Vec::new();
        let all = Setting::new(SettingFamily::V4, Of::All, "rp_filter");
        let of_all = before.before(&all)?.unwrap_or(0);
        let mut fabric = self.ports.clone();
        fabric.extend(self.tap.and_then(|tap| Some((tap, interfaces.get(&tap)?.clone()))));
        if of_all > 0 {
            for of in others(interfaces, &fabric) {
                let setting = Setting::new(SettingFamily::V4, of, "rp_filter");
                if let Some(own) = before.before(&setting)? {
                    wanted.push(Wanted { setting, value: own.max(of_all), is_held: true });
                }
            }
        }
        wanted.push(plain(all, 0));
        for (index, name) in fabric {
            let setting = Setting::new(SettingFamily::V4, Of::Interface { index, name }, "rp_filter");
            wanted.push(Wanted { setting, value: 0, is_held: of_all > 0 });
        }
        Ok(wanted)
    }

    /// What lets a kernel forward that cannot do so by a single interface.
    ///
    /// An interface that forwards no longer takes its routes from routers (`accept_ra` 1), and the kernel drops those
    /// that it has. So the others are told first to take them all the same, and afterwards that they are no routers,
    /// which leaves them as hosts are: only `all` says whether packets are forwarded.
    fn forwarding_of_all(
        &self,
        others: impl Iterator<Item = Of>,
        before: &impl Before,
    ) -> Result<Vec<Wanted>, SettingsError> {
        let all = Setting::new(SettingFamily::V6, Of::All, "forwarding");
        if before.before(&all)? != Some(0) {
            return Ok(Vec::new());
        }
        let (mut first, mut last) = (Vec::new(), Vec::new());
        for of in others {
            let accept = Setting::new(SettingFamily::V6, of.clone(), "accept_ra");
            if before.before(&accept)? == Some(1) {
                first.push(plain(accept, 2));
            }
            let forwarding = Setting::new(SettingFamily::V6, of, "forwarding");
            if let Some(value) = before.before(&forwarding)? {
                last.push(Wanted { setting: forwarding, value, is_held: true });
            }
        }
        for (&index, name) in &self.ports {
            let of = Of::Interface { index, name: name.clone() };
            last.push(Wanted {
                setting: Setting::new(SettingFamily::V6, of, "forwarding"),
                value: 1,
                is_held: true,
            });
        }
        first.push(plain(all, 1));
        first.extend(last);
        Ok(first)
    }
}

/// All interfaces but these, and what those that come later begin with.
fn others<'a>(
    interfaces: &'a BTreeMap<u32, String>,
    but: &'a BTreeMap<u32, String>,
) -> impl Iterator<Item = Of> + 'a {
    let others = interfaces.iter().filter(|(index, _)| !but.contains_key(index));
    let others = others.map(|(&index, name)| Of::Interface { index, name: name.clone() });
    [Of::Default].into_iter().chain(others)
}

const fn plain(setting: Setting, value: i32) -> Wanted {
    Wanted { setting, value, is_held: false }
}
