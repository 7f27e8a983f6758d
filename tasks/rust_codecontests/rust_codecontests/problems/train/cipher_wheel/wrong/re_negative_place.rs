// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: uses % on negative numbers, so a turned word gives a negative place and the index panics.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let mut word: Vec<i64> = it.next().unwrap().bytes().map(|b| (b - b'a') as i64).collect();
    let n = word.len() as i64;
    let q: usize = it.next().unwrap().parse().unwrap();
    let mut start = 0i64;
    let mut dir = 1i64;
    let mut shift = 0i64;
    let mut read = String::new();
    for _ in 0..q {
        let c = it.next().unwrap();
        if c == "R" {
            start = (start + dir * (n - 1)) % n;
            dir = -dir;
            continue;
        }
        let k: i64 = it.next().unwrap().parse().unwrap();
        if c == "L" {
            start = (start + dir * k) % n;
        } else if c == "C" {
            shift = (shift + k) % 26;
        } else {
            let p = ((start + dir * (k - 1)) % n) as usize;
            if c == "S" {
                let x = it.next().unwrap().as_bytes()[0] - b'a';
                word[p] = (x as i64 + 26 - shift) % 26;
            } else {
                read.push((b'a' + ((word[p] + shift) % 26) as u8) as char);
            }
        }
    }
    println!("{}", read);
    for i in 0..n {
        let p = ((start + dir * i) % n) as usize;
        print!("{}", (b'a' + ((word[p] + shift) % 26) as u8) as char);
    }
    println!();
}
