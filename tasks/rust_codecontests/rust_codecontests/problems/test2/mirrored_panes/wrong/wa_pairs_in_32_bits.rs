// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: counts in 32 bits, which many equal panes overflow.
use std::collections::HashMap;
use std::io::{self, Read};

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let mut earlier: HashMap<String, u32> = HashMap::new();
    let mut pairs: u32 = 0;
    for pane in text.split_whitespace().skip(2) {
        let backwards: String = pane.chars().rev().collect();
        pairs = pairs.wrapping_add(*earlier.get(&backwards).unwrap_or(&0));
        *earlier.entry(pane.to_string()).or_default() += 1;
    }
    println!("{}", pairs);
}
