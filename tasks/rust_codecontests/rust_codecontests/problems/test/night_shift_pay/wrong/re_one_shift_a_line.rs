// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: reads one shift from each line, but several shifts may stand on one line.
use std::io::{self, BufRead};

fn minutes(s: &str) -> usize {
    let (h, m) = s.split_once(':').unwrap();
    h.parse::<usize>().unwrap() * 60 + m.parse::<usize>().unwrap()
}

fn main() {
    let stdin = io::stdin();
    let mut lines = stdin.lock().lines();
    let first = lines.next().unwrap().unwrap();
    let nums: Vec<u64> = first.split_whitespace().map(|x| x.parse().unwrap()).collect();
    let (n, a, b) = (nums[0], nums[1], nums[2]);
    let mut total = 0u64;
    for _ in 0..n {
        let line = lines.next().unwrap().unwrap();
        let (from, to) = line.trim().split_once('-').unwrap();
        let s = minutes(from);
        let mut e = minutes(to);
        if e <= s {
            e += 1440;
        }
        if e - s > 360 {
            e -= 30;
        }
        for t in s..e {
            let hour = t / 60 % 24;
            total += if hour >= 22 || hour < 6 { b } else { a };
        }
    }
    println!("{}", total);
}
