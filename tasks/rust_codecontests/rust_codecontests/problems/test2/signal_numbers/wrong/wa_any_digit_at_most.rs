// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: counts numbers for every digit that is at least their largest one.
use std::io::{self, Read};

/// Counts the numbers from 0 to `bound` with the largest digit `top`, which divides the sum of the digits.
fn count(bound: u64, top: usize) -> u64 {
    let digits: Vec<usize> = bound.to_string().bytes().map(|b| (b - b'0') as usize).collect();
    // ways[tight][seen][remainder]
    let mut ways = [[[0u64; 9]; 2]; 2];
    ways[1][0][0] = 1;
    for &digit in &digits {
        let mut next = [[[0u64; 9]; 2]; 2];
        for tight in 0..2 {
            for seen in 0..2 {
                for rest in 0..top {
                    let most = if tight == 1 { digit.min(top) } else { top };
                    for d in 0..=most {
                        let t = if tight == 1 && d == digit { 1 } else { 0 };
                        let s = if seen == 1 || d == top { 1 } else { 0 };
                        next[t][s][(rest + d) % top] += ways[tight][seen][rest];
                    }
                }
            }
        }
        ways = next;
    }
    (0..2).map(|s| ways[0][s][0] + ways[1][s][0]).sum()
}

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let mut numbers = text.split_ascii_whitespace().map(|word| word.parse::<u64>().unwrap());
    let a = numbers.next().unwrap();
    let b = numbers.next().unwrap();
    let total: u64 = (1..=9).map(|top| count(b, top) - count(a - 1, top)).sum();
    println!("{}", total);
}
