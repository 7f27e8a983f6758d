// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: skips empty elements completely, so that they do not count for the greatest depth.
use std::collections::HashMap;
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut stack: Vec<String> = Vec::new();
    let mut open: HashMap<String, i32> = HashMap::new();
    let mut deepest = 0;
    let mut forced = 0;
    let mut stray = 0;
    for part in input.split('<').skip(1) {
        let tag = part.split('>').next().unwrap();
        if tag.ends_with('/') {
            continue;
        }
        if let Some(name) = tag.strip_prefix('/') {
            if *open.get(name).unwrap_or(&0) == 0 {
                stray += 1;
            } else {
                loop {
                    let top = stack.pop().unwrap();
                    *open.get_mut(&top).unwrap() -= 1;
                    if top == name {
                        break;
                    }
                    forced += 1;
                }
            }
        } else {
            stack.push(tag.to_string());
            *open.entry(tag.to_string()).or_insert(0) += 1;
            deepest = deepest.max(stack.len());
        }
    }
    println!("{} {} {}", deepest, forced + stack.len(), stray);
}
