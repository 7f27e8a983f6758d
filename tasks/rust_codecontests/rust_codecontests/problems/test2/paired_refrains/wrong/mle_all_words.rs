// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: puts every row of letters into a map.
use std::collections::HashMap;
use std::io::{self, Read};

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let poem = text.split_whitespace().nth(1).unwrap();
    let mut counts: HashMap<String, u32> = HashMap::new();
    for start in 0..poem.len() {
        for end in start + 1..=poem.len() {
            *counts.entry(poem[start..end].to_string()).or_insert(0) += 1;
        }
    }
    println!("{}", counts.values().filter(|c| **c % 2 == 0).count());
}
