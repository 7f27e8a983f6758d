// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: compares the letter parts with upper and lower case as different letters.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let n: usize = it.next().unwrap().parse().unwrap();
    let mut tags: Vec<(String, usize, String, usize)> = Vec::new();
    let mut names = Vec::new();
    for i in 0..n {
        let tag = it.next().unwrap();
        let cut = tag.find(|c: char| c.is_ascii_digit()).unwrap();
        let value = tag[cut..].trim_start_matches('0').to_string();
        tags.push((tag[..cut].to_string(), value.len(), value, i));
        names.push(tag);
    }
    tags.sort();
    for t in &tags {
        println!("{}", names[t.3]);
    }
}
