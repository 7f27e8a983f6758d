// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: breaks ties by the spelling of the tag instead of the order in the input.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut tags: Vec<&str> = input.split_whitespace().skip(1).collect();
    tags.sort_by(|x, y| {
        let cut_x = x.find(|c: char| c.is_ascii_digit()).unwrap();
        let cut_y = y.find(|c: char| c.is_ascii_digit()).unwrap();
        let (a, p) = x.split_at(cut_x);
        let (b, q) = y.split_at(cut_y);
        let v = p.trim_start_matches('0');
        let w = q.trim_start_matches('0');
        a.to_lowercase()
            .cmp(&b.to_lowercase())
            .then(v.len().cmp(&w.len()))
            .then(v.cmp(w))
            .then(p.len().cmp(&q.len()))
            .then(x.cmp(y))
    });
    for t in tags {
        println!("{}", t);
    }
}
