// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace();
    let n: usize = it.next().unwrap().parse().unwrap();
    let mut items: Vec<(String, usize, String, usize, usize)> = Vec::new();
    let mut tags: Vec<&str> = Vec::new();
    for i in 0..n {
        let tag = it.next().unwrap();
        let cut = tag.find(|c: char| c.is_ascii_digit()).unwrap();
        let letters = tag[..cut].to_ascii_lowercase();
        let digits = &tag[cut..];
        let value = digits.trim_start_matches('0').to_string();
        items.push((letters, value.len(), value, digits.len(), i));
        tags.push(tag);
    }
    items.sort();
    let mut out = String::new();
    for item in &items {
        out.push_str(tags[item.4]);
        out.push('\n');
    }
    print!("{}", out);
}
