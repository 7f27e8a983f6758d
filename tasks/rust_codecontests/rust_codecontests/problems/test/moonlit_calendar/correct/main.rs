// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace();
    let mut next = || it.next().unwrap();
    let m: usize = next().parse().unwrap();
    let w: u64 = next().parse().unwrap();
    let a: u64 = next().parse().unwrap();
    let b: u64 = next().parse().unwrap();
    let l: usize = next().parse().unwrap();
    let months: Vec<u64> = (0..m).map(|_| next().parse().unwrap()).collect();
    let base: u64 = months.iter().sum();
    let both = a / gcd(a, b) * b;
    let before = |y: u64| (y - 1) * base + (y - 1) / a - (y - 1) / both;
    let leap = |y: u64| y % a == 0 && y % b != 0;
    let q: usize = next().parse().unwrap();
    let mut out = String::new();
    for _ in 0..q {
        if next() == "N" {
            let x: u64 = next().parse().unwrap();
            let (mut lo, mut hi) = (1u64, x / base + 2);
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
            loop {
                let mut len = months[month];
                if month + 1 == l && leap(lo) {
                    len += 1;
                }
                if day <= len {
                    break;
                }
                day -= len;
                month += 1;
            }
            out += &format!("{} {} {} {}\n", lo, month + 1, day, (x - 1) % w + 1);
        } else {
            let y: u64 = next().parse().unwrap();
            let mo: usize = next().parse().unwrap();
            let d: u64 = next().parse().unwrap();
            let extra = |i: usize| if i == l && leap(y) { 1 } else { 0 };
            if mo > m || d > months[mo - 1] + extra(mo) {
                out += "none\n";
                continue;
            }
            let mut x = before(y) + d;
            for i in 1..mo {
                x += months[i - 1] + extra(i);
            }
            out += &format!("{} {}\n", x, (x - 1) % w + 1);
        }
    }
    print!("{}", out);
}
