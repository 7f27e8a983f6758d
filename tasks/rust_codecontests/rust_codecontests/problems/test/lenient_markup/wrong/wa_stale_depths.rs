// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: keeps depths of forced elements on the lists of names, so an element that is long closed can look open again.
use std::collections::HashMap;
use std::io::{self, Read};

fn main() {
    let mut text = Vec::new();
    io::stdin().read_to_end(&mut text).unwrap();
    let mut ids: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut levels: Vec<Vec<usize>> = Vec::new();
    let mut depth = 0usize;
    let mut best = 0usize;
    let mut forced = 0usize;
    let mut stray = 0usize;
    let mut i = 0;
    while i < text.len() {
        if text[i] != b'<' {
            i += 1;
            continue;
        }
        i += 1;
        let closing = text[i] == b'/';
        if closing {
            i += 1;
        }
        let begin = i;
        while text[i].is_ascii_lowercase() {
            i += 1;
        }
        let fresh = ids.len();
        let id = *ids.entry(text[begin..i].to_vec()).or_insert(fresh);
        if id == levels.len() {
            levels.push(Vec::new());
        }
        if closing {
            while levels[id].last().map_or(false, |&l| l > depth) {
                levels[id].pop();
            }
            match levels[id].pop() {
                Some(l) => {
                    forced += depth - l;
                    depth = l - 1;
                }
                None => stray += 1,
            }
        } else {
            best = best.max(depth + 1);
            if text[i] != b'/' {
                while levels[id].last().map_or(false, |&l| l > depth) {
                    levels[id].pop();
                }
                depth += 1;
                levels[id].push(depth);
            }
        }
    }
    println!("{} {} {}", best, forced + depth, stray);
}
