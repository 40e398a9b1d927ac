//! The engines compute and prove the tables that a manager asks for.

use mapper_ib::manager::{Levels, Routes, Task, TaskAdapter, TaskSwitch};
use mapper_opensm::{Adapter, Answer, Asker, Link, Options, Request, Switch, answer};

/// What became of a task.
#[derive(Debug)]
pub struct Computed {
    /// What an administrator should read, a line each.
    pub said: Vec<String>,
    /// Tables that were proved, or why there are none.
    pub routes: Result<Routes, String>,
}

/// Computes tables by the engines that are wanted.
pub fn compute(task: &Task, options: Options) -> Computed {
    match answer(&request(task, options)) {
        Ok(answer) => Computed { said: answer.said.clone(), routes: Ok(routes(task, answer)) },
        Err(declined) => Computed { said: Vec::new(), routes: Err(declined.said.join("\n")) },
    }
}

fn request(task: &Task, options: Options) -> Request {
    let link = |link: &mapper_ib::manager::Link| Link {
        port: link.port,
        peer: link.peer,
        peer_port: link.peer_port,
    };
    let switch = |switch: &TaskSwitch| Switch {
        guid: switch.guid,
        system_guid: switch.system_guid,
        description: switch.description.clone(),
        lid: switch.lid,
        lmc: 0,
        ports: switch.ports,
        links: switch.links.iter().map(link).collect(),
        in_force: switch.in_force.clone(),
        before: switch.before.clone(),
    };
    let adapter = |adapter: &TaskAdapter| Adapter {
        node_guid: adapter.node_guid,
        port_guid: adapter.port_guid,
        system_guid: adapter.system_guid,
        description: adapter.description.clone(),
        port: adapter.port,
        lid: adapter.lid,
        lmc: adapter.lmc,
    };
    let levels =
        |levels: &Levels| mapper_opensm::Levels { switches: levels.switches.clone(), of: levels.of.clone() };
    Request {
        asker: Asker::Agent,
        options,
        serving: task.serving.clone(),
        is_urgent: task.is_urgent,
        told: task.told.as_ref().map(|told| told.iter().map(levels).collect()),
        lanes: task.lanes,
        switches: task.switches.iter().map(switch).collect(),
        adapters: task.adapters.iter().map(adapter).collect(),
    }
}

fn routes(task: &Task, answer: Answer) -> Routes {
    Routes {
        engine: answer.engine,
        tables: answer.tables.into_iter().map(|table| (table.guid, table.ports)).collect(),
        emptied_first: answer.emptied_first,
        last: answer.last.into_iter().collect(),
        must_wait: answer.must_wait,
        layers: answer.layer_count,
        places: answer.places,
        levels: Levels {
            switches: task.switches.iter().map(|switch| switch.guid).collect(),
            of: answer.levels,
        },
    }
}
