//! The record of a subscription. It is only sent in answers, and never read from requests.

use super::{Field, Gid, InformInfo};
use crate::mad::put;

/// The offset of the subscription, which stands behind its subscriber.
const SUBSCRIPTION_AT: usize = 24;

/// The parts of an InformInfoRecord that a request can name.
pub const INFORM_FIELDS: &[Field] = &[
    Field::bytes(0, 0, 16),
    Field::bytes(1, 16, 2),
    Field::bytes(3, SUBSCRIPTION_AT, 16),
    Field::bytes(4, SUBSCRIPTION_AT + 16, 2),
    Field::bytes(5, SUBSCRIPTION_AT + 18, 2),
    Field::bytes(7, SUBSCRIPTION_AT + 22, 1),
    Field::bytes(8, SUBSCRIPTION_AT + 23, 1),
    Field::bytes(9, SUBSCRIPTION_AT + 24, 2),
    Field::bytes(10, SUBSCRIPTION_AT + 26, 2),
    Field::bytes(11, SUBSCRIPTION_AT + 28, 3),
    Field::bits(13, SUBSCRIPTION_AT + 31, 3, 5),
    Field::bytes(15, SUBSCRIPTION_AT + 33, 3),
];

/// The record of a subscription. `number` says which of the subscriber's subscriptions it is, counted from 0.
pub fn inform_record(subscriber: Gid, number: u16, wanted: &InformInfo) -> [u8; 60] {
    let mut data = [0; 60];
    put(&mut data, 0, &subscriber.emit());
    put(&mut data, 16, &number.to_be_bytes());
    put(&mut data, SUBSCRIPTION_AT, &wanted.emit());
    data
}
