// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

fn judge(code: &str) -> String {
    let bytes = code.as_bytes();
    let last = bytes[bytes.len() - 1];
    if code.split('-').any(|g| g.is_empty()) || !last.is_ascii_uppercase() {
        return "form".to_string();
    }
    let plain: Vec<u64> = bytes
        .iter()
        .filter(|&&c| c != b'-')
        .map(|&c| if c.is_ascii_digit() { (c - b'0') as u64 } else { (c - b'A') as u64 + 10 })
        .collect();
    if plain.len() < 2 {
        return "form".to_string();
    }
    let sum: u64 = plain[..plain.len() - 1].iter().enumerate().map(|(i, v)| (i as u64 + 1) * v).sum();
    let right = b'A' + (sum % 26) as u8;
    if right == last {
        "ok".to_string()
    } else {
        (right as char).to_string()
    }
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut out = String::new();
    for code in input.split_ascii_whitespace().skip(1) {
        out.push_str(&judge(code));
        out.push('\n');
    }
    print!("{}", out);
}
