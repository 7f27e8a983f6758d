// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: computes the value with wrapping u64 arithmetic, so long numbers compare wrongly.
use std::io::{self, Read};

fn key(tag: &str) -> (String, u64, usize) {
    let mut letters = String::new();
    let mut value: u64 = 0;
    let mut digits = 0;
    for c in tag.chars() {
        if let Some(d) = c.to_digit(10) {
            value = value.wrapping_mul(10).wrapping_add(d as u64);
            digits += 1;
        } else {
            letters.push(c.to_ascii_lowercase());
        }
    }
    (letters, value, digits)
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut tags: Vec<&str> = input.split_whitespace().skip(1).collect();
    tags.sort_by_cached_key(|t| key(t));
    println!("{}", tags.join("\n"));
}
