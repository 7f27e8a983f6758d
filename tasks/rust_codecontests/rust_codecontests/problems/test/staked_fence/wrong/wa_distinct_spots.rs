// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: counts spots in a set, although stakes of different sides on one spot are different stakes.
use std::collections::HashSet;
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
    let mut it = input.split_ascii_whitespace().map(|x| x.parse::<i64>().unwrap());
    let n = it.next().unwrap() as usize;
    let points: Vec<(i64, i64)> = (0..n).map(|_| (it.next().unwrap(), it.next().unwrap())).collect();
    let mut corners = HashSet::new();
    let mut inner = 0;
    let mut gates = 0;
    for i in 0..n {
        let a = points[i];
        let b = points[(i + 1) % n];
        corners.insert(a);
        let g = gcd((a.0 - b.0).abs(), (a.1 - b.1).abs());
        inner += g - 1;
        if g % 2 == 0 {
            gates += 1;
        }
    }
    println!("{} {}", inner + corners.len() as i64, gates);
}
