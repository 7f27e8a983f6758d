// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: The time for cleaning is forgotten.
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
    let _c = it.next().unwrap();
    let mut wishes: Vec<(i64, usize, i64)> = Vec::with_capacity(n);
    for i in 0..n {
        let s = it.next().unwrap();
        let e = it.next().unwrap();
        wishes.push((s, i, e));
    }
    wishes.sort_unstable();
    let mut busy: BinaryHeap<Reverse<(i64, usize)>> = BinaryHeap::new();
    let mut free: BinaryHeap<Reverse<usize>> = BinaryHeap::new();
    let mut uses: Vec<usize> = Vec::new();
    let mut refused = 0;
    for (s, _, e) in wishes {
        while let Some(&Reverse((until, desk))) = busy.peek() {
            if until > s {
                break;
            }
            busy.pop();
            free.push(Reverse(desk));
        }
        let desk = match free.pop() {
            Some(Reverse(d)) => d,
            None if uses.len() < m => {
                uses.push(0);
                uses.len() - 1
            }
            None => {
                refused += 1;
                continue;
            }
        };
        uses[desk] += 1;
        busy.push(Reverse((e, desk)));
    }
    let most = *uses.iter().max().unwrap();
    let desk = uses.iter().position(|&u| u == most).unwrap() + 1;
    println!("{} {} {}", refused, desk, most);
}
