// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: uses the vector of corners after a for loop has consumed it, so it does not compile.
use std::io::{self, Read};

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace().map(|x| x.parse::<i64>().unwrap());
    let n = it.next().unwrap() as usize;
    let mut points = Vec::new();
    for _ in 0..n {
        points.push((it.next().unwrap(), it.next().unwrap()));
    }
    let mut stakes = 0;
    let mut gates = 0;
    let mut prev = points[n - 1];
    for p in points {
        let g = gcd((p.0 - prev.0).abs(), (p.1 - prev.1).abs());
        stakes += g;
        if g % 2 == 0 {
            gates += 1;
        }
        prev = p;
    }
    println!("{} {}", stakes.max(points.len() as i64), gates);
}
