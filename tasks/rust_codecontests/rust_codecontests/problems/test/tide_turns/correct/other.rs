// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::cmp::Ordering;
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let n: usize = it.next().unwrap().parse().unwrap();
    let w: usize = it.next().unwrap().parse().unwrap();
    let a: Vec<i64> = it.map(|x| x.parse().unwrap()).collect();
    if 2 * w > n {
        println!("0 0");
        return;
    }
    let mut older: i64 = a[..w].iter().sum();
    let mut newer: i64 = a[w..2 * w].iter().sum();
    let mut states = vec![newer.cmp(&older)];
    for i in 2 * w..n {
        newer += a[i] - a[i - w];
        older += a[i - w] - a[i - 2 * w];
        states.push(newer.cmp(&older));
    }
    let moving: Vec<Ordering> = states
        .iter()
        .copied()
        .filter(|s| *s != Ordering::Equal)
        .collect();
    let turns = moving.windows(2).filter(|p| p[0] != p[1]).count();
    let longest = states
        .split(|s| *s != Ordering::Greater)
        .map(|run| run.len())
        .max()
        .unwrap_or(0);
    println!("{} {}", turns, longest);
}
