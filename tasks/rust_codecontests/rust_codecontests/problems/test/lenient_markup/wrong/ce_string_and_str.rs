// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: pushes a &str onto a vector of String.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut stack: Vec<String> = Vec::new();
    let mut deepest = 0;
    let mut forced = 0;
    let mut stray = 0;
    for part in input.split('<').skip(1) {
        let tag = part.split('>').next().unwrap();
        if tag.starts_with('/') {
            let name = &tag[1..];
            match stack.iter().rposition(|s| s == name) {
                Some(p) => {
                    forced += stack.len() - p - 1;
                    stack.truncate(p);
                }
                None => stray += 1,
            }
        } else {
            deepest = deepest.max(stack.len() + 1);
            if !tag.ends_with('/') {
                stack.push(tag);
            }
        }
    }
    println!("{} {} {}", deepest, forced + stack.len(), stray);
}
