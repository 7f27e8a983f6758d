// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let tokens: Vec<&str> = input.split_whitespace().collect();
    let s = tokens[0].as_bytes();
    let n = s.len();
    let mut before = vec![0u64; n + 1];
    let mut close = vec![0usize; n];
    let mut open: Vec<usize> = Vec::new();
    let mut count = vec![1u64; n];
    let mut current = 0u64;
    let mut number = 0u64;
    let mut saved: Vec<u64> = Vec::new();
    for i in 0..n {
        before[i] = current;
        match s[i] {
            b'0'..=b'9' => number = number * 10 + (s[i] - b'0') as u64,
            b'(' => {
                count[i] = number.max(1);
                number = 0;
                open.push(i);
                saved.push(current);
                current = 0;
            }
            b')' => {
                let o = open.pop().unwrap();
                close[o] = i;
                current = saved.pop().unwrap() + current * count[o];
            }
            b'~' => {}
            _ => current += 1,
        }
    }
    before[n] = current;
    let mut out = format!("{}\n", current);
    for t in &tokens[2..] {
        let mut k: u64 = t.parse::<u64>().unwrap() - 1;
        let mut i = 0;
        loop {
            let c = s[i];
            if c.is_ascii_lowercase() {
                if k == 0 {
                    out.push(c as char);
                    break;
                }
                k -= 1;
                i += 1;
            } else if c == b'(' {
                let inner = before[close[i]];
                let total = inner * count[i];
                if k >= total {
                    k -= total;
                    i = close[i] + 1;
                } else {
                    k %= inner;
                    if i > 0 && s[i - 1] == b'~' {
                        k = inner - 1 - k;
                    }
                    i += 1;
                }
            } else {
                i += 1;
            }
        }
    }
    println!("{}", out);
}
