// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: counts leap years as y/A - y/B, which is right only if B is a multiple of A.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let mut next = || it.next().unwrap();
    let m: usize = next().parse().unwrap();
    let w: i64 = next().parse().unwrap();
    let a: i64 = next().parse().unwrap();
    let b: i64 = next().parse().unwrap();
    let l: usize = next().parse().unwrap();
    let months: Vec<i64> = (0..m).map(|_| next().parse().unwrap()).collect();
    let base: i64 = months.iter().sum();
    let before = |y: i64| (y - 1) * base + (y - 1) / a - (y - 1) / b;
    let leap = |y: i64| y % a == 0 && y % b != 0;
    let q: usize = next().parse().unwrap();
    for _ in 0..q {
        if next() == "N" {
            let x: i64 = next().parse().unwrap();
            let mut lo = 1;
            let mut hi = x / base + 2;
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
            while month < m - 1 {
                let len = months[month] + if month + 1 == l && leap(lo) { 1 } else { 0 };
                if day <= len {
                    break;
                }
                day -= len;
                month += 1;
            }
            println!("{} {} {} {}", lo, month + 1, day, (x - 1) % w + 1);
        } else {
            let y: i64 = next().parse().unwrap();
            let mo: usize = next().parse().unwrap();
            let d: i64 = next().parse().unwrap();
            if mo > m || d > months[mo - 1] + if mo == l && leap(y) { 1 } else { 0 } {
                println!("none");
                continue;
            }
            let mut x = before(y) + d;
            for i in 1..mo {
                x += months[i - 1] + if i == l && leap(y) { 1 } else { 0 };
            }
            println!("{} {}", x, (x - 1).rem_euclid(w) + 1);
        }
    }
}
