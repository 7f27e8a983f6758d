// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io;

fn main() {
    let mut line = String::new();
    io::stdin().read_line(&mut line).unwrap();
    let (mut total, mut longest) = (0u128, 0u128);
    let (mut number, mut times, mut job) = (0u128, 1u128, 0u128);
    for c in line.trim().chars().chain(";".chars()) {
        match c {
            '0'..='9' => number = 10 * number + c.to_digit(10).unwrap() as u128,
            '*' => {
                times = number;
                number = 0;
            }
            'h' => {
                job += 60 * number;
                number = 0;
            }
            'm' => {
                job += number;
                number = 0;
            }
            _ => {
                longest = longest.max(times * job);
                times = 1;
                job = 0;
                if c == ';' {
                    total += longest;
                    longest = 0;
                }
            }
        }
    }
    println!("{}h{:0>2}", total / 60, total % 60);
}
