//! crossbeam's queue of blocks.
use crossbeam_queue::SegQueue;

type Queue = SegQueue<i64>;

gallery::queue_adapter! { Queue: Queue::new; SegQueue::push, SegQueue::pop }
