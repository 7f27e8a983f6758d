// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: Division of negative numbers rounds towards zero instead of downwards.
use std::collections::VecDeque;
use std::io::{self, Read};

fn best(a: &[i64], inns: &[u8], lo: usize, hi: usize, p: i64, q: i64) -> Option<(i64, i64, i64)> {
    let n = a.len();
    let mut sums = vec![0i64; n + 1];
    for i in 0..n {
        sums[i + 1] = sums[i] + a[i];
    }
    let value = |i: usize| q * sums[i] - p * i as i64;
    let mut result: Option<(i64, i64, i64)> = None;
    let mut window: VecDeque<usize> = VecDeque::new();
    let mut start = 0;
    let mut last_inn = 0;
    for end in 1..=n {
        if inns[end - 1] == b'1' {
            last_inn = end;
        }
        while start < last_inn && start + lo <= end {
            while window.back().map_or(false, |&b| value(b) >= value(start)) {
                window.pop_back();
            }
            window.push_back(start);
            start += 1;
        }
        while window.front().map_or(false, |&f| f + hi < end) {
            window.pop_front();
        }
        if let Some(&f) = window.front() {
            let gain = value(end) - value(f);
            if result.map_or(true, |r| gain > r.0) {
                result = Some((gain, sums[end] - sums[f], (end - f) as i64));
            }
        }
    }
    result
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let tokens: Vec<&str> = input.split_whitespace().collect();
    let lo: usize = tokens[1].parse().unwrap();
    let hi: usize = tokens[2].parse().unwrap();
    let inns = tokens[3].as_bytes();
    let a: Vec<i64> = tokens[4..].iter().map(|t| t.parse().unwrap()).collect();
    let mut p = -2_000_000i64;
    let mut q = 1i64;
    loop {
        match best(&a, inns, lo, hi, p, q) {
            None => {
                println!("NONE");
                return;
            }
            Some((0, _, _)) => break,
            Some((_, sum, len)) => {
                p = sum;
                q = len;
            }
        }
    }
    println!("{}", 1000 * p / q);
}
