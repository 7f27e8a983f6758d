// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: parses the digits as u64, which panics for numbers of more than 20 digits.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let n: usize = it.next().unwrap().parse().unwrap();
    let mut items: Vec<(String, u64, usize, usize, String)> = Vec::new();
    for i in 0..n {
        let tag = it.next().unwrap().to_string();
        let letters: String = tag.chars().take_while(|c| c.is_alphabetic()).collect();
        let digits: String = tag.chars().skip_while(|c| c.is_alphabetic()).collect();
        let value: u64 = digits.parse().unwrap();
        items.push((letters.to_lowercase(), value, digits.len(), i, tag));
    }
    items.sort();
    for item in items {
        println!("{}", item.4);
    }
}
