// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace();
    let mut word: Vec<i64> = it.next().unwrap().bytes().map(|c| (c - b'a') as i64).collect();
    let n = word.len() as i64;
    let q: usize = it.next().unwrap().parse().unwrap();
    let (mut start, mut step, mut shift) = (0i64, 1i64, 0i64);
    let letter = |v: i64| (b'a' + v.rem_euclid(26) as u8) as char;
    let mut out = String::new();
    for _ in 0..q {
        let kind = it.next().unwrap();
        if kind == "R" {
            start = (start - step).rem_euclid(n);
            step = -step;
            continue;
        }
        let k: i64 = it.next().unwrap().parse().unwrap();
        match kind {
            "L" => start = (start + step * k).rem_euclid(n),
            "C" => shift = (shift + k) % 26,
            _ => {
                let place = (start + step * (k - 1)).rem_euclid(n) as usize;
                if kind == "S" {
                    let x = it.next().unwrap().as_bytes()[0];
                    word[place] = (x - b'a') as i64 - shift;
                } else {
                    out.push(letter(word[place] + shift));
                }
            }
        }
    }
    out.push('\n');
    for i in 0..n {
        out.push(letter(word[(start + step * i).rem_euclid(n) as usize] + shift));
    }
    println!("{}", out);
}
