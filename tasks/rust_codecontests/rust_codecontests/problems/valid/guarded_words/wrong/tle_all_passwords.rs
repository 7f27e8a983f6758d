// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: makes all passwords.
use std::io::{self, Read};

fn count(password: &mut String, n: usize, c: u8, forbidden: &[&str], wished: &[&str]) -> u64 {
    if forbidden.iter().any(|word| password.ends_with(word)) {
        return 0;
    }
    if password.len() == n {
        return if wished.iter().all(|word| password.contains(word)) { 1 } else { 0 };
    }
    let mut total = 0;
    for letter in b'a'..b'a' + c {
        password.push(letter as char);
        total += count(password, n, c, forbidden, wished);
        password.pop();
    }
    total % 998_244_353
}

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let words: Vec<&str> = text.split_whitespace().collect();
    let n = words[0].parse().unwrap();
    let c = words[1].parse().unwrap();
    let f: usize = words[2].parse().unwrap();
    println!("{}", count(&mut String::new(), n, c, &words[4..4 + f], &words[4 + f..]));
}
