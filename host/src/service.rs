//! Services: what runs beside the agent and asks other hosts through it.
//!
//! A service never speaks by itself. It says what it would ask, and the host asks when the agent has
//! nothing better to do: its questions travel as the agent's messages do, signed and fresh where there are
//! keys, along proved routes, and never while a map is made. To add one, implement [`Service`], give it a
//! number and a name in [`ServiceNumber::ALL`], and a field in `Services`: the compiler names the lists that miss it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use mapper_proto::agent::{Agent, AskedService, ServiceQuestion};
use mapper_proto::map::host_type;
use mapper_proto::wire::ServiceNumber;
use mapper_proto::{Instant, Mac};

use crate::directory::Gossip;
use crate::loss_reports::LossReports;
use crate::resolution::Resolver;
use crate::routes::{Basis, RouteTable};

/// Combined with a host's seed, so that the resolver draws other numbers than whatever else draws from that
/// seed.
const RESOLUTION: u64 = 0x7265_736f_6c76_6572;

/// Where a host stands in the map whose routes are in use.
#[derive(Debug, Clone)]
pub struct Place {
    /// The map.
    pub basis: Arc<Basis>,
    /// The parent in the binary tree over the map's hosts; none for the global mapper.
    pub parent: Option<Mac>,
    /// The children in that tree, at most two.
    pub children: Vec<Mac>,
}

impl Place {
    /// The place of the host `own`; `None` if the map does not list it.
    pub(crate) fn new(basis: &Arc<Basis>, own: Mac) -> Option<Self> {
        let map = basis.map();
        let index = map.host_index(own)?;
        let agent = |at: usize| map.hosts.get(at).filter(|host| host.host_type != host_type::PHANTOM);
        let mac = |at: usize| agent(at).map(|host| host.mac);
        let parent = map.parent_index(index).and_then(mac);
        let children = map.children_indices(index).filter_map(mac).collect();
        Some(Self { basis: Arc::clone(basis), parent, children })
    }
}

/// A question that a service wants to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The host that is asked.
    pub to: Mac,
    /// The question: at most
    /// [`Reason::MAX_SERVICE_BYTES`](mapper_proto::wire::Reason::MAX_SERVICE_BYTES) bytes.
    pub body: Vec<u8>,
    /// How many bytes the answer may have beyond those of the question.
    pub room_bytes: u16,
}

/// One service at one host: a deterministic state machine, as the agent is.
pub trait Service: Debug + Send {
    /// The service's number on the wire.
    fn number(&self) -> ServiceNumber;

    /// Takes in that routes of another map are in use.
    fn map_changed(&mut self, now: Instant, place: &Place);

    /// Answers a question of another host in at most `most_bytes` bytes; `None` if there is no answer. As an
    /// answer can get lost, the same question may come again, and must then be answered alike.
    fn asked(&mut self, now: Instant, from: Mac, question: &[u8], most_bytes: usize) -> Option<Vec<u8>>;

    /// Takes the answer to the question that is under way to this host, or `None` if there was none.
    fn answered(&mut self, now: Instant, to: Mac, answer: Option<&[u8]>);

    /// The next question to ask, if there is one by now. At most one is under way to each host.
    fn poll_question(&mut self, now: Instant) -> Option<Question>;

    /// When [`Self::poll_question`] may have a question.
    fn poll_timeout(&self) -> Option<Instant>;
}

/// All services of a host.
#[derive(Debug)]
pub(crate) struct Services {
    gossip: Gossip,
    resolver: Resolver,
    loss_reports: LossReports,
    /// Questions under way, by ticket.
    under_way: BTreeMap<u32, (ServiceNumber, Mac)>,
    next_ticket: u32,
    /// Whether the agent let services ask when it was last asked.
    may_ask: bool,
}

impl Services {
    /// The services of the host with the address `own`. What they draw at random, they draw from `seed`.
    pub(crate) fn new(own: Mac, seed: u64) -> Self {
        Self {
            gossip: Gossip::new(own),
            resolver: Resolver::new(own, seed ^ RESOLUTION),
            loss_reports: LossReports::new(own),
            under_way: BTreeMap::new(),
            next_ticket: 0,
            may_ask: false,
        }
    }

    /// The directory's service.
    pub(crate) fn gossip(&self) -> &Gossip {
        &self.gossip
    }

    /// The directory's service, to be changed by commands of the user.
    pub(crate) fn gossip_mut(&mut self) -> &mut Gossip {
        &mut self.gossip
    }

    /// The service that finds what the directory does not tell.
    pub(crate) fn resolver(&self) -> &Resolver {
        &self.resolver
    }

    /// The service that finds what the directory does not tell, to be asked for something.
    pub(crate) fn resolver_mut(&mut self) -> &mut Resolver {
        &mut self.resolver
    }

    /// The service by which the global mapper hears of cables that lose frames.
    pub(crate) fn loss_reports_mut(&mut self) -> &mut LossReports {
        &mut self.loss_reports
    }

    /// Ends the questions of somebody on this machine that have waited for long enough, or asks them again.
    pub(crate) fn end_questions(&mut self, now: Instant) {
        self.resolver.handle_timeout(now, self.gossip.directory());
    }

    /// All services. [`Self::due_at`] lists the same ones; the compiler asks both for a new field.
    fn all(&mut self) -> [&mut dyn Service; ServiceNumber::ALL.len()] {
        let Self { gossip, resolver, loss_reports, under_way: _, next_ticket: _, may_ask: _ } = self;
        [gossip, resolver, loss_reports]
    }

    fn of(&mut self, number: ServiceNumber) -> Option<&mut dyn Service> {
        self.all().into_iter().find(|service| service.number() == number)
    }

    /// Tells all services that routes of another map are in use.
    pub(crate) fn map_changed(&mut self, now: Instant, basis: &Arc<Basis>, own: Mac) {
        let Some(place) = Place::new(basis, own) else { return };
        self.all().into_iter().for_each(|service| service.map_changed(now, &place));
    }

    /// Has a service answer what another host asks it.
    pub(crate) fn asked(&mut self, now: Instant, agent: &mut Agent, asked: AskedService) {
        let service = self.of(asked.service);
        let answer = service.and_then(|it| it.asked(now, asked.from, &asked.question, asked.most_bytes));
        agent.answer_service(asked, answer);
    }

    /// Tells a service what came of its question.
    pub(crate) fn answered(&mut self, now: Instant, ticket: u32, answer: Option<&[u8]>) {
        let Some((number, to)) = self.under_way.remove(&ticket) else { return };
        if let Some(service) = self.of(number) {
            service.answered(now, to, answer);
        }
    }

    /// Takes in that the agent is another one, so that no question under way will be answered.
    pub(crate) fn lose_questions(&mut self, now: Instant) {
        while let Some((&ticket, _)) = self.under_way.first_key_value() {
            self.answered(now, ticket, None);
        }
    }

    /// Asks the questions that are due, as far as the agent lets services ask.
    pub(crate) fn ask(&mut self, now: Instant, agent: &mut Agent, table: Option<&RouteTable>) {
        // Nearly always no question is due, and then there is no need to look at the agent.
        self.may_ask = true;
        if self.due_at().is_none_or(|at| at > now) {
            return;
        }
        self.may_ask = table.is_some() && agent.may_ask_service();
        let Some(table) = table else { return };
        let mut count = self.all().len();
        while self.may_ask && count > 0 {
            count = 0;
            for number in self.all().map(|service| service.number()) {
                let question = self.of(number).and_then(|service| service.poll_question(now));
                let Some(question) = question else { continue };
                count += 1;
                self.put(now, agent, table, number, question);
            }
            self.may_ask = agent.may_ask_service();
        }
    }

    fn put(
        &mut self,
        now: Instant,
        agent: &mut Agent,
        table: &RouteTable,
        service: ServiceNumber,
        Question { to, body, room_bytes }: Question,
    ) {
        let ticket = self.next_ticket;
        self.next_ticket = ticket.wrapping_add(1);
        let path = table.host(to).and_then(|host| table.paths_to(host).next());
        let asked = path.is_some_and(|path| {
            let question = ServiceQuestion { ticket, service, to, question: body, room_bytes };
            agent.ask_service(now, question, path.way)
        });
        self.under_way.insert(ticket, (service, to));
        if !asked {
            self.answered(now, ticket, None);
        }
    }

    /// When a service may have a question.
    fn due_at(&self) -> Option<Instant> {
        let Self { gossip, resolver, loss_reports, under_way: _, next_ticket: _, may_ask: _ } = self;
        let all: [&dyn Service; ServiceNumber::ALL.len()] = [gossip, resolver, loss_reports];
        all.into_iter().filter_map(Service::poll_timeout).min()
    }

    /// When [`Self::ask`] has something to do, or, whether services may ask or not, a question of somebody on this machine or
    /// a report ends.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let due = self.due_at().filter(|_| self.may_ask);
        due.into_iter().chain(self.resolver.deadline()).chain(self.loss_reports.deadline()).min()
    }
}
