// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: compares every two panes.
use std::io::{self, Read};

fn fits(a: &[u8], b: &[u8]) -> bool {
    a.iter().zip(b.iter().rev()).all(|(x, y)| x == y)
}

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let panes: Vec<&[u8]> = text.split_whitespace().skip(2).map(|p| p.as_bytes()).collect();
    let mut count: u64 = 0;
    for i in 0..panes.len() {
        for j in 0..i {
            if fits(panes[i], panes[j]) {
                count += 1;
            }
        }
    }
    println!("{}", count);
}
