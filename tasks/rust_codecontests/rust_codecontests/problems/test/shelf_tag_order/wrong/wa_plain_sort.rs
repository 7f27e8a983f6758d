// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: sorts the whole lower-case tags as strings, so pin10 comes before pin9.
use std::io::{self, BufRead};

fn main() {
    let stdin = io::stdin();
    let mut lines = stdin.lock().lines();
    let n: usize = lines.next().unwrap().unwrap().trim().parse().unwrap();
    let mut tags: Vec<String> = Vec::with_capacity(n);
    for _ in 0..n {
        let line = lines.next().unwrap().unwrap();
        tags.push(line.trim().to_string());
    }
    tags.sort_by_key(|t| t.to_lowercase());
    for t in tags {
        println!("{}", t);
    }
}
