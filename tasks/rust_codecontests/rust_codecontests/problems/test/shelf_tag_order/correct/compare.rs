// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::cmp::Ordering;
use std::io::{self, Read};

fn split(tag: &str) -> (&str, &str) {
    let cut = tag.bytes().position(|b| b.is_ascii_digit()).unwrap();
    tag.split_at(cut)
}

fn compare(x: &&str, y: &&str) -> Ordering {
    let (a, p) = split(x);
    let (b, q) = split(y);
    let letters = a
        .bytes()
        .map(|c| c.to_ascii_uppercase())
        .cmp(b.bytes().map(|c| c.to_ascii_uppercase()));
    let width = 60;
    letters
        .then_with(|| {
            let left = "0".repeat(width - p.len()) + p;
            let right = "0".repeat(width - q.len()) + q;
            left.cmp(&right)
        })
        .then_with(|| p.len().cmp(&q.len()))
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut tags: Vec<&str> = input.split_whitespace().skip(1).collect();
    tags.sort_by(compare);
    println!("{}", tags.join("\n"));
}
