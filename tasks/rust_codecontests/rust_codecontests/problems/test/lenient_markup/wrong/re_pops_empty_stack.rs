// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: pops until the name is found without checking that it is open, so a stray closing tag panics.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let chars: Vec<char> = input.chars().collect();
    let mut stack: Vec<String> = Vec::new();
    let mut deepest = 0;
    let mut forced = 0;
    let stray = 0;
    let mut i = 0;
    while i < chars.len() {
        if chars[i] == '<' {
            let mut tag = String::new();
            i += 1;
            while chars[i] != '>' {
                tag.push(chars[i]);
                i += 1;
            }
            if tag.starts_with('/') {
                let name = tag[1..].to_string();
                while stack[stack.len() - 1] != name {
                    stack.pop();
                    forced += 1;
                }
                stack.pop();
            } else if tag.ends_with('/') {
                deepest = deepest.max(stack.len() + 1);
            } else {
                stack.push(tag);
                deepest = deepest.max(stack.len());
            }
        }
        i += 1;
    }
    println!("{} {} {}", deepest, forced + stack.len(), stray);
}
