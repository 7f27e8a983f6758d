// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: uses the tag after it was moved into the vector.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let n: usize = it.next().unwrap().parse().unwrap();
    let mut tags: Vec<String> = Vec::new();
    let mut keys: Vec<(String, usize, String, usize, usize)> = Vec::new();
    for i in 0..n {
        let tag = it.next().unwrap().to_string();
        tags.push(tag);
        let cut = tag.find(|c: char| c.is_ascii_digit()).unwrap();
        let letters = tag[..cut].to_lowercase();
        let value = tag[cut..].trim_start_matches('0').to_string();
        keys.push((letters, value.len(), value, tag.len(), i));
    }
    keys.sort();
    for k in keys {
        println!("{}", tags[k.4]);
    }
}
