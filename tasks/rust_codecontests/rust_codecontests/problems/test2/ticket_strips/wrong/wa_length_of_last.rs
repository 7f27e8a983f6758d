// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: divides all tickets of a strip by the number of digits of the last one.
use std::io::{self, Read};

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let words: Vec<&str> = text.split_whitespace().skip(1).collect();
    for pair in words.chunks(2) {
        let length = pair[1].len() as u64;
        let a: u64 = pair[0].parse().unwrap();
        let b: u64 = pair[1].parse().unwrap();
        println!("{}", b / length - (a - 1) / length);
    }
}
