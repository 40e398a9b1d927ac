//! Which settings there are, so that each engine can say which of them it obeys.

use super::{Balance, Engine, Refusal, Settings};

/// Makes [`Setting`] of the fields of [`Settings`]. All fields are named, so that none is forgotten when one
/// is added.
macro_rules! settings {
    (every engine: $($common:ident),*; $($(#[$doc:meta])* $Setting:ident: $field:ident, $what:literal;)*) => {
        /// A setting that some engines obey and others do not.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Setting {
            $($(#[$doc])* $Setting,)*
        }

        impl Setting {
            /// All settings.
            pub const ALL: &'static [Self] = &[$(Self::$Setting),*];

            /// What it is called where a user is told of it.
            pub const fn what(self) -> &'static str {
                match self {
                    $(Self::$Setting => $what,)*
                }
            }

            /// Whether the setting differs from its default.
            pub(super) fn differs(self, settings: &Settings, default: &Settings) -> bool {
                match self {
                    $(Self::$Setting => settings.$field != default.$field,)*
                }
            }
        }

        impl Settings {
            /// These settings, where all that are not obeyed have their defaults.
            pub(super) fn only(&self, obeyed: &[Setting]) -> Self {
                let Self { $($common,)* $($field,)* } = self;
                let default = Self::default();
                Self {
                    $($common: $common.clone(),)*
                    $($field: if obeyed.contains(&Setting::$Setting) { $field.clone() } else { default.$field },)*
                }
            }
        }
    };
}

settings! {
    every engine: seed, max_hops, reassign, xbar_destinations;
    /// How equally short routes are chosen among.
    Balance: balance, "OpenSM's balance";
    /// Tables that were in force.
    Previous: previous, "previous tables";
    /// Which destinations come first.
    OrderFirst: order_first, "a routing order";
    /// Ports that do not count.
    UncountedPorts: uncounted_ports, "ports that do not count";
    /// The order in which ports are tried.
    PortOrder: port_order, "a port search order";
    /// What a step counts.
    HopWeights: hop_weights, "hop weights";
    /// The hops to reckon with.
    Hops: hops, "a lid matrix";
    /// Choice at random.
    Scatter: scatter, "scatter";
    /// Another order of ports at each xbar.
    PortShifting: port_shifting, "port shifting";
    /// The xbars that are roots.
    Roots: roots, "roots";
    /// Xbars' ids.
    Ids: ids, "ids";
    /// Routes between roots.
    ConnectRoots: connect_roots, "connecting roots";
    /// The hosts that are compute nodes.
    ComputeNodes: compute_nodes, "compute nodes";
    /// The hosts that are I/O nodes.
    IoNodes: io_nodes, "I/O nodes";
    /// Steps the wrong way.
    MaxReverseHops: max_reverse_hops, "reverse hops";
    /// The first layer.
    FirstLayer: first_layer, "a first layer";
    /// Most layers.
    MaxLayers: max_layers, "a limit on layers";
    /// What is stated of a torus.
    Torus: torus, "a stated torus";
    /// Tables to load.
    File: file, "tables to load";
    /// Routes a destination.
    Passes: passes, "routes a destination";
}

impl Setting {
    /// The engines that obey it by this balance, whatever else is set, in the order of [`Engine::ALL`].
    pub fn engines(self, balance: Balance) -> Vec<Engine> {
        let settings = Settings { balance, ..Settings::default() };
        Engine::ALL.into_iter().filter(|engine| engine.obeys(&settings).contains(&self)).collect()
    }

    /// The settings that were set.
    pub(super) fn set(settings: &Settings) -> impl Iterator<Item = Self> {
        let default = Settings::default();
        // An engine that does not obey previous tables routes all anew in any case.
        let is_moot = |setting| setting == Self::Previous && settings.reassign;
        Self::ALL
            .iter()
            .copied()
            .filter(move |&setting| setting.differs(settings, &default) && !is_moot(setting))
    }
}

/// Checks that an engine may ignore the settings that it does not obey.
///
/// # Errors
/// If a lid matrix is given to an engine that does not reckon with it: its routes would be longer or shorter than
/// what was asked for. All other settings only choose among routes, so it is enough to tell that they have no effect.
pub(super) fn check(engine: Engine, settings: &Settings) -> Result<(), Refusal> {
    let is_refused = settings.hops.is_some() && !engine.obeys(settings).contains(&Setting::Hops);
    if is_refused { Err(Refusal::LidMatrix { balance: settings.balance }) } else { Ok(()) }
}

/// What a user should know of settings that an engine does not obey, and that are not refused.
pub(super) fn without_effect(engine: Engine, settings: &Settings) -> Vec<String> {
    let obeyed = engine.obeys(settings);
    Setting::set(settings)
        .filter(|setting| !obeyed.contains(setting) && *setting != Setting::Hops)
        .map(|setting| {
            format!("{}: no effect on {engine}{}", setting.what(), whose(setting, engine, settings))
        })
        .collect()
}

/// Where a setting would have an effect.
fn whose(setting: Setting, engine: Engine, settings: &Settings) -> String {
    let (balance, name) = match settings.balance {
        Balance::Fabric => (Balance::Opensm, "opensm"),
        Balance::Opensm => (Balance::Fabric, "fabric"),
    };
    let otherwise = Settings { balance, ..settings.clone() };
    let obeys = |engine: Engine, settings: &Settings| engine.obeys(settings).contains(&setting);
    if obeys(engine, &otherwise) {
        return format!(" as it balances here; it has one with --balance {name}");
    }
    let wanted = |engine: &Engine| obeys(*engine, settings) || obeys(*engine, &otherwise);
    let engines: Vec<Engine> = Engine::ALL.into_iter().filter(wanted).collect();
    if engines.is_empty() { String::new() } else { format!(", only on {}", listed(&engines, "and")) }
}

/// The names of engines as a sentence lists them: `a, b and c`.
pub(super) fn listed(engines: &[Engine], last_word: &str) -> String {
    let names: Vec<&str> = engines.iter().map(|engine| engine.name()).collect();
    match names.split_last() {
        None => String::new(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} {last_word} {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_engine_does_not_obey_is_told() {
        for engine in Engine::ALL {
            assert!(engine.without_effect(&Settings::default()).is_empty(), "{engine}");
        }
        let settings =
            Settings { passes: 3, max_layers: Some(2), roots: Some(Vec::new()), ..Settings::default() };
        let said = Engine::Torus.without_effect(&settings);
        assert!(said[0].starts_with("roots: no effect on torus, only on updn"), "{said:?}");
        assert_eq!(said.len(), 2, "layers have an effect: {said:?}");
        assert_eq!(Engine::Dispersive.without_effect(&settings).len(), 2);
    }

    #[test]
    fn a_setting_of_the_other_balance_says_which() {
        let settings = Settings { port_shifting: true, ..Settings::default() };
        let said = Engine::Minhop.without_effect(&settings);
        assert_eq!(
            said,
            ["port shifting: no effect on minhop as it balances here; it has one with --balance opensm"]
        );
        let settings = Settings { balance: Balance::Opensm, ..settings };
        assert!(Engine::Minhop.without_effect(&settings).is_empty());
    }

    #[test]
    fn each_setting_is_some_engines() {
        for &setting in Setting::ALL {
            let other = Settings { balance: Balance::Opensm, ..Settings::default() };
            let obeys = |engine: Engine| {
                engine.obeys(&Settings::default()).contains(&setting)
                    || engine.obeys(&other).contains(&setting)
            };
            assert!(Engine::ALL.into_iter().any(obeys), "{setting:?}");
        }
    }

    #[test]
    fn an_engine_sees_nothing_but_what_it_obeys() {
        let settings = Settings { roots: Some(vec![1]), passes: 3, seed: 7, ..Settings::default() };
        let seen = settings.only(&[Setting::Roots]);
        assert_eq!(seen, Settings { roots: Some(vec![1]), seed: 7, ..Settings::default() });
    }
}
