// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::collections::BTreeSet;
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<u64> = input
        .split_whitespace()
        .map(|x| x.parse().unwrap())
        .collect();
    let n = v[0] as usize;
    let desks = (v[1] as usize).min(n);
    let cleaning = v[2];
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|&i| v[3 + 2 * i]);
    let mut free: BTreeSet<usize> = (0..desks).collect();
    let mut busy: BTreeSet<(u64, usize)> = BTreeSet::new();
    let mut uses = vec![0u32; desks];
    let mut refused = 0;
    for i in order {
        let (s, e) = (v[3 + 2 * i], v[4 + 2 * i]);
        while let Some(&(until, desk)) = busy.iter().next() {
            if until > s {
                break;
            }
            busy.remove(&(until, desk));
            free.insert(desk);
        }
        let first = free.iter().next().copied();
        if let Some(desk) = first {
            free.remove(&desk);
            uses[desk] += 1;
            busy.insert((e + cleaning, desk));
        } else {
            refused += 1;
        }
    }
    let mut best = 0;
    for d in 1..desks {
        if uses[d] > uses[best] {
            best = d;
        }
    }
    println!("{} {} {}", refused, best + 1, uses[best]);
}
