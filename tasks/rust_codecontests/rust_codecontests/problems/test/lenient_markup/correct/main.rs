// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::collections::HashMap;
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut open: HashMap<&str, usize> = HashMap::new();
    let mut stack: Vec<&str> = Vec::new();
    let (mut deepest, mut forced, mut stray) = (0, 0, 0);
    let mut rest = input.as_str();
    while let Some(p) = rest.find('<') {
        rest = &rest[p + 1..];
        let end = rest.find('>').unwrap();
        let tag = &rest[..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            if open.get(name).copied().unwrap_or(0) == 0 {
                stray += 1;
                continue;
            }
            while let Some(top) = stack.pop() {
                *open.get_mut(top).unwrap() -= 1;
                if top == name {
                    break;
                }
                forced += 1;
            }
        } else {
            deepest = deepest.max(stack.len() + 1);
            if !tag.ends_with('/') {
                stack.push(tag);
                *open.entry(tag).or_insert(0) += 1;
            }
        }
    }
    println!("{} {} {}", deepest, forced + stack.len(), stray);
}
