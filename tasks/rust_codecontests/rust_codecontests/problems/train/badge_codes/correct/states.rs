// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, BufRead};

fn main() {
    let stdin = io::stdin();
    let mut lines = stdin.lock().lines();
    let n: usize = lines.next().unwrap().unwrap().trim().parse().unwrap();
    for _ in 0..n {
        let line = lines.next().unwrap().unwrap();
        let mut previous = '-';
        let mut good = true;
        let mut count = 0usize;
        let mut sum = 0usize;
        let mut term = 0usize;
        for c in line.trim().chars() {
            if c == '-' {
                good &= previous != '-';
            } else {
                sum = (sum + term) % 26;
                count += 1;
                term = c.to_digit(36).unwrap() as usize * count;
            }
            previous = c;
        }
        if !good || !previous.is_alphabetic() || count < 2 {
            println!("form");
            continue;
        }
        let right = (b'A' + sum as u8) as char;
        if right == previous {
            println!("ok");
        } else {
            println!("{}", right);
        }
    }
}
