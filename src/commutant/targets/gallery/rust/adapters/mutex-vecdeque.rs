//! The standard library's ring buffer behind a lock.
use std::collections::VecDeque;
use std::sync::Mutex;

type Queue = Mutex<VecDeque<i64>>;

gallery::queue_adapter! { Queue: || Mutex::new(VecDeque::with_capacity(gallery::ROOM));
|queue: &Queue, item| queue.lock().unwrap().push_back(item),
|queue: &Queue| queue.lock().unwrap().pop_front() }
