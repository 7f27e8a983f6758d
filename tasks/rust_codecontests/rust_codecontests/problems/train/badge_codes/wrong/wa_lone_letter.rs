// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: accepts a code that is nothing but its check letter as of good form.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    for code in input.split_whitespace().skip(1) {
        let last = code.chars().last().unwrap();
        if !last.is_ascii_alphabetic() || code.split('-').any(|g| g.is_empty()) {
            println!("form");
            continue;
        }
        let plain: Vec<u64> = code
            .chars()
            .filter(|c| *c != '-')
            .map(|c| c.to_digit(36).unwrap() as u64)
            .collect();
        let mut sum = 0;
        for (i, v) in plain.iter().enumerate().take(plain.len() - 1) {
            sum = (sum + (i as u64 + 1) * v) % 26;
        }
        let right = (b'A' + sum as u8) as char;
        println!("{}", if right == last { "ok".to_string() } else { right.to_string() });
    }
}
