// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: a closing tag is stray unless it names the innermost open element, so nothing is ever forced before the end.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut stack: Vec<&str> = Vec::new();
    let mut deepest = 0;
    let mut stray = 0;
    for part in input.split('<').skip(1) {
        let tag = part.split('>').next().unwrap();
        if tag.starts_with('/') {
            if stack.last() == Some(&&tag[1..]) {
                stack.pop();
            } else {
                stray += 1;
            }
        } else if tag.ends_with('/') {
            deepest = deepest.max(stack.len() + 1);
        } else {
            stack.push(tag);
            deepest = deepest.max(stack.len());
        }
    }
    println!("{} {} {}", deepest, stack.len(), stray);
}
