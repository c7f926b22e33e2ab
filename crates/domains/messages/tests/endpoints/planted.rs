//! Faults that must be found.

use sync::mutant::must_be_caught;

#[test]
fn planted_faults_are_found() {
    must_be_caught("messages: a request reserves no place for its reply", super::ask_more_than_can_be_answered);
    must_be_caught("messages: a full ring of notices loses one", super::tell_more_than_there_is_room_for);
}
