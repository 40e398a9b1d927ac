//! Questions to ports on behalf of whoever asks the administration.

use super::*;

#[test]
fn what_switches_hold_is_read_for_whoever_asks_the_administration() {
    let mut trial = Trial::new(Model::ring(3));
    trial.run(Duration::from_secs(15));
    let lid = trial.model.nodes[4].ports[&0].lid();
    let request = SaMad {
        method: SaMethod::Get,
        status: 0,
        tid: 5,
        attribute: SaAttribute::MulticastTableRecord,
        modifier: 0,
        rmpp: Rmpp::default(),
        key: 0,
        offset: 0,
        mask: 1,
        data: [0; RECORD_BYTES],
    };
    let mad = request.with_record(&lid.to_be_bytes()).emit();
    let address = Address::Lid { lid: trial.model.hosts()[1].1, queue_pair: 1, level: 0 };
    trial.manager.handle_packet(&Packet { address, mad }, trial.now);
    trial.fates = vec![Fate::RequestLost].into_iter();
    trial.run(Duration::from_secs(5));
    let answer = SaMad::parse(&trial.answers.pop().unwrap().mad).unwrap();
    assert_eq!((answer.status, answer.tid), (0, 5));
    let held = trial.model.nodes[4].multicast[&0].emit();
    assert!(held.iter().any(|&byte| byte != 0));
    assert_eq!(answer.data[8..72], held);
}
