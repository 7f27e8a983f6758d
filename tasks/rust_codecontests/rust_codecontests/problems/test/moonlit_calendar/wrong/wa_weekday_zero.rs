// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: computes the weekday as x modulo W, which gives 0 instead of W on the last day of the week.
use std::io::{self, Read};

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let mut next = || it.next().unwrap();
    let m: usize = next().parse().unwrap();
    let w: u64 = next().parse().unwrap();
    let a: u64 = next().parse().unwrap();
    let b: u64 = next().parse().unwrap();
    let l: usize = next().parse().unwrap();
    let months: Vec<u64> = (0..m).map(|_| next().parse().unwrap()).collect();
    let base: u64 = months.iter().sum();
    let both = a * b / gcd(a, b);
    let before = |y: u64| (y - 1) * base + (y - 1) / a - (y - 1) / both;
    let length = |y: u64, i: usize| months[i] + (i + 1 == l && y % a == 0 && y % b != 0) as u64;
    let q: usize = next().parse().unwrap();
    for _ in 0..q {
        if next() == "N" {
            let x: u64 = next().parse().unwrap();
            let (mut lo, mut hi) = (1, x / base + 2);
            while hi - lo > 1 {
                let mid = (lo + hi) / 2;
                if before(mid) < x {
                    lo = mid;
                } else {
                    hi = mid;
                }
            }
            let mut day = x - before(lo);
            let mut month = 0;
            while day > length(lo, month) {
                day -= length(lo, month);
                month += 1;
            }
            println!("{} {} {} {}", lo, month + 1, day, x % w);
        } else {
            let y: u64 = next().parse().unwrap();
            let mo: usize = next().parse().unwrap();
            let d: u64 = next().parse().unwrap();
            if mo > m || d > length(y, mo - 1) {
                println!("none");
                continue;
            }
            let x = before(y) + (0..mo - 1).map(|i| length(y, i)).sum::<u64>() + d;
            println!("{} {}", x, x % w);
        }
    }
}
