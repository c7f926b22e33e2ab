//! tokio's channel for many senders and one receiver, which a lock hands on here.
use std::sync::Mutex;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

pub struct Queue {
    sender: UnboundedSender<i64>,
    receiver: Mutex<UnboundedReceiver<i64>>,
}

fn make() -> Queue {
    let (sender, receiver) = unbounded_channel();
    Queue { sender, receiver: Mutex::new(receiver) }
}

gallery::queue_adapter! { Queue: make;
|queue: &Queue, item| queue.sender.send(item).expect("it is open"),
|queue: &Queue| queue.receiver.lock().unwrap().try_recv().ok() }
