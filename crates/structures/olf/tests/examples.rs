//! The examples do what they say, in small.
#![cfg(not(any(loom, shuttle)))]

#[path = "../examples/client_pool.rs"]
mod client_pool;
#[path = "../examples/coins.rs"]
mod coins;
#[path = "../examples/work_stealing.rs"]
mod work_stealing;

#[test]
fn accounts_lose_no_money() {
    println!("{} audits", coins::pay_and_audit(2_000));
}

#[test]
fn every_job_runs_once() {
    assert_eq!(work_stealing::run_all(300).iter().sum::<u32>(), 300);
}

#[test]
fn nobody_waits_for_what_is_idle() {
    assert_eq!(client_pool::use_often(300), 600);
}
