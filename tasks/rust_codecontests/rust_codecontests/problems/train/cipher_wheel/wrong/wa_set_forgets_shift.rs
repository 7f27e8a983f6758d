// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: stores a letter that is set without taking off the shift that is added when it is read.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let mut word: Vec<u8> = it.next().unwrap().bytes().collect();
    let n = word.len() as i64;
    let q: usize = it.next().unwrap().parse().unwrap();
    let mut start = 0i64;
    let mut dir = 1i64;
    let mut shift = 0u64;
    let mut read = String::new();
    for _ in 0..q {
        let c = it.next().unwrap();
        if c == "R" {
            start = (start + dir * (n - 1)).rem_euclid(n);
            dir = -dir;
            continue;
        }
        let k: i64 = it.next().unwrap().parse().unwrap();
        if c == "L" {
            start = (start + dir * k).rem_euclid(n);
        } else if c == "C" {
            shift = (shift + k as u64) % 26;
        } else {
            let p = (start + dir * (k - 1)).rem_euclid(n) as usize;
            if c == "S" {
                word[p] = it.next().unwrap().as_bytes()[0];
            } else {
                read.push((b'a' + (word[p] - b'a' + shift as u8) % 26) as char);
            }
        }
    }
    println!("{}", read);
    let mut last = String::new();
    for i in 0..n {
        let p = (start + dir * i).rem_euclid(n) as usize;
        last.push((b'a' + (word[p] - b'a' + shift as u8) % 26) as char);
    }
    println!("{}", last);
}
