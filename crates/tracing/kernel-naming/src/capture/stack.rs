//! vmalloc space: kernel stacks (`CONFIG_VMAP_STACK`), and other areas by the code that allocated them.

use super::record::{CaptureKind, ObjectCapture};
use super::space::Space;

/// Tasks looked at before a stack's owner is given up.
const TASK_LIMIT: usize = 4096;
/// Depth of the tree of vmalloc areas; a red-black tree of 2^40 areas is not deeper.
const TREE_DEPTH_LIMIT: usize = 96;
/// Bytes of `task_struct.comm`.
const TASK_NAME_BYTES: usize = 16;

impl Space<'_> {
    fn stack_holds(&self, task: u64, address: u64) -> bool {
        let numbers = &self.layout.numbers;
        let stack = self.field(task, numbers.task_stack);
        stack.and_then(|stack| address.checked_sub(stack)).is_some_and(|within| within < numbers.stack_size)
    }

    /// The task whose kernel stack holds `address`: first those that run, then all.
    fn stack_owner(&self, address: u64, per_cpu: &[u64]) -> Option<u64> {
        let numbers = &self.layout.numbers;
        for base in per_cpu {
            let task = base.checked_add(numbers.current_task).and_then(|variable| self.read_u64(variable));
            if let Some(task) = task.filter(|task| self.stack_holds(*task, address)) {
                return Some(task);
            }
        }
        let mut left = TASK_LIMIT;
        let mut leader = numbers.init_task;
        while left > 0 {
            // Threads of a process hang on its signal_struct.
            let threads = self.field(leader, numbers.task_signal)?.checked_add(numbers.signal_thread_head)?;
            let mut node = self.read_u64(threads)?;
            while node != threads && left > 0 {
                left -= 1;
                let task = node.checked_sub(numbers.task_thread_node)?;
                if self.stack_holds(task, address) {
                    return Some(task);
                }
                node = self.read_u64(node)?;
            }
            left = left.saturating_sub(1);
            leader = self.field(leader, numbers.task_tasks)?.checked_sub(numbers.task_tasks)?;
            if leader == numbers.init_task {
                return None;
            }
        }
        None
    }

    /// The vmalloc area that holds `address`: its `vm_struct`.
    fn vmalloc_area(&self, address: u64) -> Option<u64> {
        let numbers = &self.layout.numbers;
        if numbers.vmap_area_root == 0 {
            return None;
        }
        let mut node = self.read_u64(numbers.vmap_area_root)?;
        for _ in 0..TREE_DEPTH_LIMIT {
            let area = node.checked_sub(numbers.vmap_area_node)?;
            if address < self.field(area, numbers.vmap_area_start)? {
                node = self.field(node, numbers.node_left)?;
            } else if address >= self.field(area, numbers.vmap_area_end)? {
                node = self.field(node, numbers.node_right)?;
            } else {
                return self.field(area, numbers.vmap_area_vm);
            }
        }
        None
    }

    /// Fills in a capture in vmalloc space.
    pub fn capture_vmalloc(&self, capture: &mut ObjectCapture, per_cpu: &[u64]) {
        let numbers = &self.layout.numbers;
        capture.kind = CaptureKind::Vmalloc as u32;
        if let Some(task) = self.stack_owner(capture.address, per_cpu) {
            self.capture_stack(capture, task);
            return;
        }
        let Some(area) = self.vmalloc_area(capture.address) else { return };
        let (start, size) = (self.field(area, numbers.vm_address), self.field(area, numbers.vm_size));
        if let (Some(start), Some(size)) = (start, size) {
            let holds = capture.address.checked_sub(start).is_some_and(|within| within < size);
            if holds {
                (capture.object, capture.object_size) = (start, size);
                capture.owner = self.field(area, numbers.vm_caller).unwrap_or(0);
            }
        }
    }

    fn capture_stack(&self, capture: &mut ObjectCapture, task: u64) {
        let numbers = &self.layout.numbers;
        capture.kind = CaptureKind::Stack as u32;
        capture.object = self.field(task, numbers.task_stack).unwrap_or(capture.address);
        capture.object_size = numbers.stack_size;
        capture.owner = task;
        capture.process_id = self.field_u32(task, numbers.task_pid).unwrap_or(0);
        let mut name = [0; TASK_NAME_BYTES];
        if let Some(address) = task.checked_add(numbers.task_comm) {
            self.copy_text(address, &mut name);
        }
        capture.cache_name[..TASK_NAME_BYTES].copy_from_slice(&name);
    }
}
