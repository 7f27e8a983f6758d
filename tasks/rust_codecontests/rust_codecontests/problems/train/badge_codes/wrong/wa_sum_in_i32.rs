// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: adds everything up in i32, which overflows for long codes.
use std::io::{self, Read};

fn value(c: u8) -> i32 {
    if c.is_ascii_digit() {
        (c - b'0') as i32
    } else {
        (c - b'A') as i32 + 10
    }
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    for code in input.split_whitespace().skip(1) {
        let plain: Vec<u8> = code.bytes().filter(|&c| c != b'-').collect();
        let bad = code.starts_with('-') || code.ends_with('-') || code.contains("--");
        if bad || plain.len() < 2 || plain[plain.len() - 1].is_ascii_digit() {
            println!("form");
            continue;
        }
        let mut sum: i32 = 0;
        for i in 0..plain.len() - 1 {
            sum += (i as i32 + 1) * value(plain[i]);
        }
        let right = b'A' + (sum.abs() % 26) as u8;
        if right == plain[plain.len() - 1] {
            println!("ok");
        } else {
            println!("{}", right as char);
        }
    }
}
