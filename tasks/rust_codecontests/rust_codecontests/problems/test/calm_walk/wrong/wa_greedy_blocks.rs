// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: cuts the path into disjoint calm blocks, so calm stretches across two blocks are missed.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<i64> = input.split_ascii_whitespace().map(|x| x.parse().unwrap()).collect();
    let n = v[0] as usize;
    let (a, b, d) = (v[1], v[2], v[3]);
    let h = &v[4..];
    let mut total = 0i64;
    let mut start = 0;
    while start < n {
        let mut high = h[start];
        let mut low = h[start];
        let mut end = start;
        while end < n && high.max(h[end]) - low.min(h[end]) <= d {
            high = high.max(h[end]);
            low = low.min(h[end]);
            end += 1;
        }
        let size = (end - start) as i64;
        for len in a..=b.min(size) {
            total += size - len + 1;
        }
        start = end;
    }
    println!("{}", total);
}
