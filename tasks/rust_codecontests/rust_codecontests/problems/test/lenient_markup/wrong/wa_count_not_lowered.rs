// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: does not lower the count of open elements for the forced ones, so later stray tags empty the stack.
use std::collections::HashMap;
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut open: HashMap<&str, i64> = HashMap::new();
    let mut stack: Vec<&str> = vec![];
    let mut deepest = 0usize;
    let mut forced = 0usize;
    let mut stray = 0usize;
    for part in input.split('<').skip(1) {
        let end = part.find('>').unwrap();
        let tag = &part[..end];
        if tag.starts_with('/') {
            let name = &tag[1..];
            let count = open.entry(name).or_insert(0);
            if *count <= 0 {
                stray += 1;
                continue;
            }
            *count -= 1;
            while let Some(top) = stack.pop() {
                if top == name {
                    break;
                }
                forced += 1;
            }
        } else {
            deepest = deepest.max(stack.len() + 1);
            if !tag.ends_with('/') {
                *open.entry(tag).or_insert(0) += 1;
                stack.push(tag);
            }
        }
    }
    println!("{} {} {}", deepest, forced + stack.len(), stray);
}
