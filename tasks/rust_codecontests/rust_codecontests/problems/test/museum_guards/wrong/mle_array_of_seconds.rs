// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: It keeps arrays over all seconds up to 10^9.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<i64> = input
        .split_whitespace()
        .map(|x| x.parse().unwrap())
        .collect();
    let (a, b) = (v[1], v[2]);
    let end = v[3..].chunks(3).map(|c| c[1]).max().unwrap() as usize;
    let mut people = vec![0i64; end + 1];
    let mut seniors = vec![0i64; end + 1];
    for c in v[3..].chunks(3) {
        people[c[0] as usize] += 1;
        people[c[1] as usize] -= 1;
        seniors[c[0] as usize] += c[2];
        seniors[c[1] as usize] -= c[2];
    }
    let (mut p, mut s) = (0, 0);
    let (mut total, mut run, mut longest) = (0, 0, 0);
    for t in 0..end {
        p += people[t];
        s += seniors[t];
        if p >= b && s >= a {
            total += 1;
            run += 1;
            longest = longest.max(run);
        } else {
            run = 0;
        }
    }
    println!("{} {}", total, longest);
}
