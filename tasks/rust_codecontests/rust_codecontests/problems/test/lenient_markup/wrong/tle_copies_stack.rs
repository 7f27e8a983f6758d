// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: copies the whole stack at every closing tag to be able to go back, which is quadratic for many stray tags.
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
            let mut copy = stack.clone();
            let mut count = 0;
            let mut found = false;
            while let Some(top) = copy.pop() {
                if top == name {
                    found = true;
                    break;
                }
                count += 1;
            }
            if found {
                stack = copy;
                forced += count;
            } else {
                stray += 1;
            }
        } else if tag.ends_with('/') {
            deepest = deepest.max(stack.len() + 1);
        } else {
            stack.push(tag.to_string());
            deepest = deepest.max(stack.len());
        }
    }
    println!("{} {} {}", deepest, forced + stack.len(), stray);
}
