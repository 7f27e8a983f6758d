// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: builds the whole text in memory, which is impossible for 10^18 letters.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let pattern: Vec<char> = it.next().unwrap().chars().collect();
    let mut stack: Vec<(usize, Vec<u8>)> = vec![(1, Vec::new())];
    let mut number = 0usize;
    for c in pattern {
        match c {
            '0'..='9' => number = number * 10 + c.to_digit(10).unwrap() as usize,
            '~' => number = 0,
            '(' => {
                stack.push((number, Vec::new()));
                number = 0;
            }
            ')' => {
                let (count, mut text) = stack.pop().unwrap();
                let top = stack.last_mut().unwrap();
                if count == 0 {
                    text.reverse();
                    top.1.append(&mut text);
                } else {
                    for _ in 0..count {
                        top.1.extend_from_slice(&text);
                    }
                }
            }
            _ => stack.last_mut().unwrap().1.push(c as u8),
        }
    }
    let text = stack.pop().unwrap().1;
    let q: usize = it.next().unwrap().parse().unwrap();
    let mut out = String::new();
    for _ in 0..q {
        let k: usize = it.next().unwrap().parse().unwrap();
        out.push(text[k - 1] as char);
    }
    println!("{}", text.len());
    println!("{}", out);
}
