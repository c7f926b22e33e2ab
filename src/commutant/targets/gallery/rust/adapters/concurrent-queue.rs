//! concurrent-queue without a bound.
use concurrent_queue::ConcurrentQueue;

type Queue = ConcurrentQueue<i64>;

gallery::queue_adapter! { Queue: Queue::unbounded;
|queue: &Queue, item| queue.push(item).expect("it is open"),
|queue: &Queue| queue.pop().ok() }
