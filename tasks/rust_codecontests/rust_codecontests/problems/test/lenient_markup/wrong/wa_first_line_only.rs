// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: reads only the first line of the document.
use std::collections::HashMap;
use std::io;

fn main() {
    let mut input = String::new();
    io::stdin().read_line(&mut input).unwrap();
    let mut open: HashMap<&str, usize> = HashMap::new();
    let mut stack: Vec<&str> = Vec::new();
    let (mut deepest, mut forced, mut stray) = (0, 0, 0);
    for part in input.split('<').skip(1) {
        let tag = part.split('>').next().unwrap();
        if let Some(name) = tag.strip_prefix('/') {
            if !open.contains_key(name) || open[name] == 0 {
                stray += 1;
                continue;
            }
            loop {
                let top = stack.pop().unwrap();
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
                *open.entry(tag).or_default() += 1;
            }
        }
    }
    println!("{} {} {}", deepest, forced + stack.len(), stray);
}
