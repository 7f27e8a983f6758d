// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: keeps a copy of every figure.
use std::collections::BTreeMap;
use std::io::{self, Read};

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let words: Vec<&str> = text.split_whitespace().collect();
    let length: usize = words[1].parse().unwrap();
    let tune: Vec<char> = words[2].chars().collect();
    let figures: Vec<String> = tune.windows(length).map(|w| w.iter().collect()).collect();
    let mut heard: BTreeMap<&String, (usize, usize)> = BTreeMap::new();
    for (start, figure) in figures.iter().enumerate() {
        heard.entry(figure).or_insert((start, start)).1 = start;
    }
    println!("{}", heard.values().filter(|times| times.1 >= times.0 + length).count());
}
