// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: a closure that advances the iterator is kept while the iterator is also used directly.
use std::io::{self, Read};

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let mut number = || -> u64 { it.next().unwrap().parse().unwrap() };
    let m = number() as usize;
    let w = number();
    let a = number();
    let b = number();
    let l = number() as usize;
    let months: Vec<u64> = (0..m).map(|_| number()).collect();
    let base: u64 = months.iter().sum();
    let both = a * b / gcd(a, b);
    let before = |y: u64| (y - 1) * base + (y - 1) / a - (y - 1) / both;
    let length = |y: u64, i: usize| months[i] + (i + 1 == l && y % a == 0 && y % b != 0) as u64;
    let q = number();
    for _ in 0..q {
        let kind = it.next().unwrap();
        if kind == "N" {
            let x = number();
            let mut y = x / (base + 1);
            while before(y + 1) < x {
                y += 1;
            }
            let mut day = x - before(y);
            let mut month = 0;
            while day > length(y, month) {
                day -= length(y, month);
                month += 1;
            }
            println!("{} {} {} {}", y, month + 1, day, (x - 1) % w + 1);
        } else {
            let y = number();
            let mo = number() as usize;
            let d = number();
            if mo > m || d > length(y, mo - 1) {
                println!("none");
            } else {
                let x = before(y) + (0..mo - 1).map(|i| length(y, i)).sum::<u64>() + d;
                println!("{} {}", x, (x - 1) % w + 1);
            }
        }
    }
}
