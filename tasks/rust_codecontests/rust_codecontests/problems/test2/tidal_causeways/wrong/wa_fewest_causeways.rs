// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: goes by as few causeways as possible.
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Read};

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let mut numbers = text.split_ascii_whitespace().map(|word| word.parse::<i64>().unwrap());
    let n = numbers.next().unwrap() as usize;
    let m = numbers.next().unwrap();
    let mut ways: Vec<Vec<(usize, i64, i64, i64)>> = vec![Vec::new(); n + 1];
    for _ in 0..m {
        let u = numbers.next().unwrap() as usize;
        let v = numbers.next().unwrap() as usize;
        let p = numbers.next().unwrap();
        let r = numbers.next().unwrap();
        let d = numbers.next().unwrap();
        ways[u].push((v, p, r, d));
        ways[v].push((u, p, r, d));
    }
    let mut first = vec![i64::MAX; n + 1];
    first[1] = 0;
    let mut queue = BinaryHeap::new();
    queue.push((Reverse(0i64), 1usize));
    while let Some((Reverse(steps), island)) = queue.pop() {
        let minute = first[island];
        for &(other, p, r, d) in &ways[island] {
            let wait = (r - minute % p + p) % p;
            let arrival = minute + wait + d;
            if first[other] == i64::MAX {
                first[other] = arrival;
                queue.push((Reverse(steps + 1), other));
            }
        }
    }
    println!("{}", if first[n] == i64::MAX { -1 } else { first[n] });
}
