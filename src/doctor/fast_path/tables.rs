//! What the kernel can, and what stands in its tables.

use mapper_fabric::wording::{plural, with_causes};
use mapper_fib::object::PROTOCOL;
use mapper_machine::kernel::{Abilities, Ability, Foreign, Kernel, KernelError, MissingRule};
use mapper_machine::options::DataPathChoice;

use super::Examined;
use crate::doctor::Check;

/// Says what this kernel lacks of what was chosen.
pub(super) fn check_abilities(examined: &Examined<'_>, abilities: &Result<Abilities, KernelError>) -> Check {
    let name = "kernel";
    let Abilities { nexthops, segments, compression, marks, force_forwarding, .. } = match abilities {
        Ok(abilities) => *abilities,
        Err(error) => {
            let what = format!("what it can forward was not tried: {}", with_causes(error));
            return Check::warning(name, what, "run `mapper doctor` as root of the machine itself");
        }
    };
    let only = "users' packets go by the tap interface alone";
    if !nexthops {
        let what = format!("it has no nexthop objects (Linux 5.3), so {only}");
        return Check::warning(name, what, "run a newer kernel, or be content with the tap interface");
    }
    let (lacks, enable) = if examined.avoid.contains(&Ability::Segments) {
        ("kernel-avoid names segments, so it uses no SRv6", "leave segments out of kernel-avoid")
    } else {
        let enable =
            "run a kernel with CONFIG_IPV6_SEG6_LWTUNNEL and SRv6 (`grep SEG6 /boot/config-$(uname -r)`)";
        ("it has no SRv6", enable)
    };
    if segments && !marks && examined.choice.allows_segments() {
        let what = "it has no nftables whose tables have an owner (Linux 5.12), by which datagrams that are too long \
                    for segments go another way, so no segments are used";
        let fix = "run a kernel with CONFIG_NF_TABLES (`grep NF_TABLES /boot/config-$(uname -r)`)";
        return match examined.choice {
            DataPathChoice::Srv6 => Check::failed(name, what, fix),
            _ => Check::warning(name, what, fix),
        };
    }
    match (segments, examined.choice) {
        (false, DataPathChoice::Srv6) => {
            Check::failed(name, format!("{lacks}, which --data-path srv6 asks for"), enable)
        }
        (false, DataPathChoice::Auto) => {
            let what = format!(
                "{lacks}, so all nodes of the fabric go by plain routes to each destination; where a machine cannot (`mapper \
                 xbar`, an agent alone with SRv6, `--data-path srv6`), packets to and through those with SRv6 go by the tap interface"
            );
            Check::warning(name, what, format!("{enable}; or run all machines with `--data-path routes`"))
        }
        (..) => {
            let has = |has: bool, what: &'static str| has.then_some(what);
            let all = [
                has(segments, "segments"),
                has(compression, "compressed segments"),
                has(nexthops, "routes by destination"),
                has(force_forwarding, "forwarding by single ports"),
            ];
            let all: Vec<_> = all.into_iter().flatten().collect();
            Check::ok(name, format!("it has {}", all.join(", ")))
        }
    }
}

/// Says what stands where objects of this project do.
pub(super) fn check_foreign(examined: &Examined<'_>) -> Check {
    let name = "forwarding tables";
    let read = || -> Result<_, KernelError> {
        let mut kernel = Kernel::open()?;
        let ours = kernel.dump()?;
        let foreign = [kernel.foreign()?, kernel.before_ours(&ours)?].concat();
        Ok((kernel.missing_rules()?, foreign, ours.len()))
    };
    let (missing, foreign, ours) = match read() {
        Ok(found) => found,
        Err(error) => return Check::error(name, &error),
    };
    if !missing.is_empty() {
        let what: Vec<_> = missing.iter().map(|it| format!("{} of IPv{}", it.table, it.version)).collect();
        let what = format!("no rule leads to the table {}, as somebody took it away", what.join(", nor to "));
        let fix: Vec<_> = missing.iter().map(|it| format!("`{}`", MissingRule::command(it))).collect();
        return Check::failed(name, what, fix.join(", "));
    }
    if !foreign.is_empty() {
        let what: Vec<_> = foreign.iter().map(ToString::to_string).collect();
        let fix: Vec<_> = foreign.iter().map(|it| format!("`{}`", Foreign::removal(it))).collect();
        let what = format!("somebody else has {} where this program's stand", what.join(", "));
        return Check::warning(name, what, format!("if nobody needs it: {}", fix.join(", ")));
    }
    judge_ours(ours, examined.holds_objects)
}

/// Says what to do about so many objects of this program. Those of a daemon that uses the kernel are to stay.
fn judge_ours(ours: usize, holds_objects: bool) -> Check {
    let name = "forwarding tables";
    match (ours, holds_objects) {
        (0, _) => Check::ok(name, "nothing is in the way"),
        (_, true) => {
            Check::ok(name, format!("{} of this program, and nothing in the way", plural(ours, "object")))
        }
        (_, false) => {
            let what = format!(
                "{} with protocol number {PROTOCOL}, though no daemon that runs has the kernel carry packets: left by \
                 keep-routes or a crash, or somebody else's; the next start takes them over or away",
                plural(ours, "object")
            );
            let fix = "to be rid of them, of the settings of the kernel that go with them, and of the interface over the fabric, start \
                       the node or agent once with `--data-path tap`, and stop it";
            Check::warning(name, what, fix)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::super::Outcome;
    use super::*;
    use crate::doctor::interface::tests::port;

    const ALL: Abilities = Abilities::ALL;

    fn outcome(choice: DataPathChoice, forwards: bool, abilities: Abilities) -> Outcome {
        judged(choice, forwards, abilities, &[]).status
    }

    fn judged(choice: DataPathChoice, forwards: bool, abilities: Abilities, avoid: &[Ability]) -> Check {
        let ports = vec![port("eth1", 1500)];
        let examined = Examined {
            ports,
            left_alone: BTreeSet::new(),
            choice,
            avoid,
            forwards,
            is_at_work: false,
            holds_objects: false,
            cables: Vec::new(),
            tap: None,
        };
        check_abilities(&examined, &Ok(abilities))
    }

    #[test]
    fn objects_are_to_be_flushed_only_where_no_daemon_uses_the_kernel() {
        assert_eq!(judge_ours(53, true).status, Outcome::Ok);
        let left = judge_ours(53, false);
        assert_eq!(left.status, Outcome::Warning);
        assert!(left.fix.unwrap().contains("`--data-path tap`"));
        assert_eq!(judge_ours(0, false).status, Outcome::Ok);
    }

    #[test]
    fn a_kernel_without_segments_is_said_to_go_by_the_tap_beside_those_with_them() {
        let plain = Abilities { segments: false, compression: false, ..ALL };
        let check = judged(DataPathChoice::Auto, true, plain, &[]);
        assert!(check.what.contains("it has no SRv6") && check.what.contains("by the tap interface"));
        assert!(check.fix.unwrap().contains("all machines with `--data-path routes`"));
        let check = judged(DataPathChoice::Auto, true, plain, &[Ability::Segments]);
        assert!(check.what.starts_with("kernel-avoid names segments"), "{}", check.what);
        assert!(check.fix.unwrap().starts_with("leave segments out of kernel-avoid"));
    }

    #[test]
    fn what_the_kernel_lacks_of_what_was_chosen_is_told() {
        let plain = Abilities { segments: false, compression: false, ..ALL };
        assert_eq!(outcome(DataPathChoice::Auto, true, ALL), Outcome::Ok);
        assert_eq!(outcome(DataPathChoice::Auto, true, plain), Outcome::Warning);
        assert_eq!(outcome(DataPathChoice::Auto, true, Abilities { marks: false, ..ALL }), Outcome::Warning);
        assert_eq!(outcome(DataPathChoice::Srv6, true, Abilities { marks: false, ..ALL }), Outcome::Failed);
        assert_eq!(outcome(DataPathChoice::Auto, false, plain), Outcome::Warning);
        assert_eq!(outcome(DataPathChoice::Srv6, true, plain), Outcome::Failed);
        assert_eq!(outcome(DataPathChoice::Routes, true, plain), Outcome::Ok);
        assert_eq!(
            outcome(DataPathChoice::Routes, true, Abilities { nexthops: false, ..plain }),
            Outcome::Warning
        );
    }
}
