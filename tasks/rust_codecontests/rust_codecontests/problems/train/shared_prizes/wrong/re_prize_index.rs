// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: It takes a prize for every place, also for those after k, and indexes out of range.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input
        .split_ascii_whitespace()
        .map(|x| x.parse::<i64>().unwrap());
    let n = it.next().unwrap() as usize;
    let k = it.next().unwrap() as usize;
    let prizes: Vec<i64> = (0..k).map(|_| it.next().unwrap()).collect();
    let mut riders = Vec::with_capacity(n);
    for i in 0..n {
        let points = it.next().unwrap();
        let faults = it.next().unwrap();
        riders.push((-points, faults, i));
    }
    riders.sort_unstable();
    let mut won = vec![0i64; n];
    let mut rest = 0i64;
    let mut i = 0;
    while i < n {
        let mut j = i;
        let mut pool = 0i64;
        while j < n && riders[j].0 == riders[i].0 && riders[j].1 == riders[i].1 {
            pool += prizes[j];
            j += 1;
        }
        let size = (j - i) as i64;
        for rider in &riders[i..j] {
            won[rider.2] = pool / size;
        }
        rest += pool % size;
        i = j;
    }
    let words: Vec<String> = won.iter().map(|x| x.to_string()).collect();
    println!("{}\n{}", words.join(" "), rest);
}
