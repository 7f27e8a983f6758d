// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: subtracts b'a' from a &str instead of from its first byte.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let mut word: Vec<u8> = it.next().unwrap().bytes().collect();
    let n = word.len();
    let q: usize = it.next().unwrap().parse().unwrap();
    let mut shift: u8 = 0;
    let mut read = String::new();
    for _ in 0..q {
        match it.next().unwrap() {
            "R" => word.reverse(),
            "L" => {
                let k: usize = it.next().unwrap().parse().unwrap();
                word.rotate_left(k % n);
            }
            "C" => {
                let k: u64 = it.next().unwrap().parse().unwrap();
                shift = (shift + (k % 26) as u8) % 26;
            }
            "S" => {
                let i: usize = it.next().unwrap().parse().unwrap();
                let x = it.next().unwrap() - b'a';
                word[i - 1] = b'a' + (x + 26 - shift) % 26;
            }
            _ => {
                let i: usize = it.next().unwrap().parse().unwrap();
                read.push((b'a' + (word[i - 1] - b'a' + shift) % 26) as char);
            }
        }
    }
    println!("{}", read);
    for c in word {
        print!("{}", (b'a' + (c - b'a' + shift) % 26) as char);
    }
    println!();
}
