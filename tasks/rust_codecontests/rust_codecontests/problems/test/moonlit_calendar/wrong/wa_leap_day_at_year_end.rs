// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: adds the leap day at the end of the year instead of at the end of month L.
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
    let _l: usize = next().parse().unwrap();
    let months: Vec<u64> = (0..m).map(|_| next().parse().unwrap()).collect();
    let base: u64 = months.iter().sum();
    let both = a * b / gcd(a, b);
    let before = |y: u64| (y - 1) * base + (y - 1) / a - (y - 1) / both;
    let leap = |y: u64| if y % a == 0 && y % b != 0 { 1 } else { 0 };
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
            while month + 1 < m && day > months[month] {
                day -= months[month];
                month += 1;
            }
            println!("{} {} {} {}", lo, month + 1, day, (x - 1) % w + 1);
        } else {
            let y: u64 = next().parse().unwrap();
            let mo: usize = next().parse().unwrap();
            let d: u64 = next().parse().unwrap();
            if mo > m || d > months[mo - 1] + if mo == m { leap(y) } else { 0 } {
                println!("none");
                continue;
            }
            let x = before(y) + months[..mo - 1].iter().sum::<u64>() + d;
            println!("{} {}", x, (x - 1) % w + 1);
        }
    }
}
