//! crossbeam's queue of a fixed size.
use crossbeam_queue::ArrayQueue;

type Queue = ArrayQueue<i64>;

gallery::queue_adapter! { Queue: || Queue::new(gallery::ROOM);
|queue: &Queue, item| queue.push(item).expect("there is room"),
ArrayQueue::pop }
