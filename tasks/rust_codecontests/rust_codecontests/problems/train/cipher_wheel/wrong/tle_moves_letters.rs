// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: moves the letters one by one for every rotation, which is far too slow for long words.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let mut word: Vec<u8> = it.next().unwrap().bytes().collect();
    let n = word.len();
    let q: usize = it.next().unwrap().parse().unwrap();
    let mut read = String::new();
    for _ in 0..q {
        match it.next().unwrap() {
            "L" => {
                let k: usize = it.next().unwrap().parse().unwrap();
                for _ in 0..k % n {
                    let first = word.remove(0);
                    word.push(first);
                }
            }
            "R" => word.reverse(),
            "C" => {
                let k: u64 = it.next().unwrap().parse().unwrap();
                for c in word.iter_mut() {
                    *c = b'a' + ((*c - b'a') as u64 + k % 26) as u8 % 26;
                }
            }
            "S" => {
                let i: usize = it.next().unwrap().parse().unwrap();
                word[i - 1] = it.next().unwrap().as_bytes()[0];
            }
            _ => {
                let i: usize = it.next().unwrap().parse().unwrap();
                read.push(word[i - 1] as char);
            }
        }
    }
    println!("{}", read);
    println!("{}", String::from_utf8(word).unwrap());
}
