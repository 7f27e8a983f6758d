// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: A lid of exactly the largest diameter is refused.
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input
        .split_ascii_whitespace()
        .map(|x| x.parse::<i64>().unwrap());
    let n = it.next().unwrap() as usize;
    let m = it.next().unwrap() as usize;
    let mut jars: Vec<(i64, i64)> = Vec::with_capacity(n);
    for _ in 0..n {
        let width = it.next().unwrap();
        let slack = it.next().unwrap();
        jars.push((width, width + slack));
    }
    let mut lids: Vec<i64> = it.take(m).collect();
    jars.sort_unstable();
    lids.sort_unstable();
    let mut open: BinaryHeap<Reverse<i64>> = BinaryHeap::new();
    let mut next = 0;
    let mut closed = 0;
    let mut largest = 0;
    for lid in lids {
        while next < n && jars[next].0 <= lid {
            open.push(Reverse(jars[next].1));
            next += 1;
        }
        while let Some(&Reverse(limit)) = open.peek() {
            if limit > lid {
                break;
            }
            open.pop();
        }
        if open.pop().is_some() {
            closed += 1;
            largest = lid;
        }
    }
    println!("{} {}", closed, largest);
}
