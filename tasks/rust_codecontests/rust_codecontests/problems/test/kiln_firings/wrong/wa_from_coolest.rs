// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: It fills the firings from the coolest pot upwards: the number is right, but the fuel is not the least.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<i64> = input
        .split_whitespace()
        .map(|x| x.parse().unwrap())
        .collect();
    let n = v[0] as usize;
    let k = v[1] as usize;
    let d = v[2];
    let mut pots = v[3..3 + n].to_vec();
    pots.sort();
    let mut firings = 0;
    let mut fuel = 0i64;
    let mut i = 0;
    while i < n {
        let start = i;
        while i < n && i - start < k && pots[i] - pots[start] <= d {
            i += 1;
        }
        firings += 1;
        fuel += pots[i - 1];
    }
    println!("{} {}", firings, fuel);
}
