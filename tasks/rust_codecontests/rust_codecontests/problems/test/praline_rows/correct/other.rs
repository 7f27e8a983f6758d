// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::collections::HashMap;
use std::io::{self, Read};

struct Window {
    count: HashMap<u32, usize>,
    left: usize,
    limit: usize,
}

impl Window {
    fn new(limit: usize) -> Window {
        Window {
            count: HashMap::new(),
            left: 0,
            limit,
        }
    }

    fn push(&mut self, row: &[u32], right: usize, c: usize) -> usize {
        let x = row[right];
        *self.count.entry(x).or_insert(0) += 1;
        while self.count.len() > self.limit || self.count.get(&x).copied().unwrap_or(0) > c {
            let y = row[self.left];
            let left = self.count.get_mut(&y).unwrap();
            *left -= 1;
            if *left == 0 {
                self.count.remove(&y);
            }
            self.left += 1;
        }
        self.left
    }
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<u32> = input
        .split_whitespace()
        .map(|x| x.parse().unwrap())
        .collect();
    let (k, c) = (v[1] as usize, v[2] as usize);
    let row = &v[3..];
    let mut wide = Window::new(k);
    let mut narrow = Window::new(k - 1);
    let mut total = 0u64;
    for right in 0..row.len() {
        let from = wide.push(row, right, c);
        let to = narrow.push(row, right, c);
        total += (to - from) as u64;
    }
    println!("{}", total);
}
