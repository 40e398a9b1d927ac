//! What is told of writes that fail.

use super::*;

#[test]
fn of_many_failures_the_first_are_told_and_how_many_more_there_are() {
    let mut manager = SubnetManager::new(settings(), Lids::default(), Instant::ZERO);
    while manager.poll_event().is_some() {}
    let failures: Vec<String> = (0..18).map(|number| format!("port {number}")).collect();
    manager.tell_failures(failures.clone());
    let told: Vec<Event> = std::iter::from_fn(|| manager.poll_event()).collect();
    let problem = |text: &str| Event::Problem(text.to_owned());
    assert_eq!((told.len(), &told[15]), (17, &problem("port 15")));
    assert_eq!(told[16], problem("2 more could not be written"));
    assert_eq!(manager.unwritten, failures);
}
