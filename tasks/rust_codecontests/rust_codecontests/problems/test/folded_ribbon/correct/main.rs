// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

enum Item {
    Letter(u8),
    Group(usize),
}

struct Group {
    reversed: bool,
    count: u64,
    items: Vec<Item>,
    ends: Vec<u64>,
}

impl Group {
    fn new(reversed: bool, count: u64) -> Self {
        Group { reversed, count, items: Vec::new(), ends: Vec::new() }
    }
    fn inner(&self) -> u64 {
        *self.ends.last().unwrap_or(&0)
    }
    fn add(&mut self, item: Item, size: u64) {
        let end = self.inner() + size;
        self.items.push(item);
        self.ends.push(end);
    }
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace();
    let pattern = it.next().unwrap().as_bytes();
    let q: usize = it.next().unwrap().parse().unwrap();
    let mut done: Vec<Group> = Vec::new();
    let mut stack = vec![Group::new(false, 1)];
    let mut number = 0u64;
    let mut tilde = false;
    for &c in pattern {
        match c {
            b'0'..=b'9' => number = number * 10 + (c - b'0') as u64,
            b'~' => tilde = true,
            b'(' => {
                stack.push(Group::new(tilde, if tilde { 1 } else { number }));
                tilde = false;
                number = 0;
            }
            b')' => {
                let g = stack.pop().unwrap();
                let size = g.inner() * g.count;
                done.push(g);
                let id = done.len() - 1;
                stack.last_mut().unwrap().add(Item::Group(id), size);
            }
            _ => stack.last_mut().unwrap().add(Item::Letter(c), 1),
        }
    }
    let root = stack.pop().unwrap();
    let mut out = format!("{}\n", root.inner());
    for _ in 0..q {
        let mut k: u64 = it.next().unwrap().parse::<u64>().unwrap() - 1;
        let mut g = &root;
        loop {
            k %= g.inner();
            if g.reversed {
                k = g.inner() - 1 - k;
            }
            let p = g.ends.partition_point(|&e| e <= k);
            if p > 0 {
                k -= g.ends[p - 1];
            }
            match g.items[p] {
                Item::Letter(c) => {
                    out.push(c as char);
                    break;
                }
                Item::Group(id) => g = &done[id],
            }
        }
    }
    println!("{}", out);
}
