// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: remembers which panes there were, and not how many of a kind.
use std::collections::HashSet;
use std::io::{self, Read};

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let mut seen: HashSet<String> = HashSet::new();
    let mut pairs: u64 = 0;
    for pane in text.split_whitespace().skip(2) {
        let backwards: String = pane.chars().rev().collect();
        if seen.contains(&backwards) {
            pairs += 1;
        }
        seen.insert(pane.to_string());
    }
    println!("{}", pairs);
}
