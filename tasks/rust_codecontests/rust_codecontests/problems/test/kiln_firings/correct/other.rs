// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, BufRead};

fn main() {
    let stdin = io::stdin();
    let mut numbers: Vec<i64> = Vec::new();
    for line in stdin.lock().lines() {
        let line = line.unwrap();
        numbers.extend(line.split_whitespace().map(|x| x.parse::<i64>().unwrap()));
    }
    let (k, d) = (numbers[1] as usize, numbers[2]);
    let mut pots = numbers[3..].to_vec();
    pots.sort();
    let mut count = 0u64;
    let mut fuel = 0i64;
    while let Some(top) = pots.pop() {
        count += 1;
        fuel += top;
        let mut taken = 1;
        while taken < k {
            match pots.last() {
                Some(&p) if top - p <= d => {
                    pots.pop();
                    taken += 1;
                }
                _ => break,
            }
        }
    }
    println!("{} {}", count, fuel);
}
