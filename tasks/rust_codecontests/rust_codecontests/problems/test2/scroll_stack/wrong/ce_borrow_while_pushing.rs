// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: reads from a list while it is borrowed for a change.
use std::io::{self, Read};

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let mut words = text.split_ascii_whitespace();
    let n: usize = words.next().unwrap().parse().unwrap();
    // Scrolls that were ever laid: number, size of the pile up to it, the one below. Entry 0 is the ground.
    let mut scrolls: Vec<(u32, u32, usize)> = vec![(0, 0, 0)];
    let mut tops: Vec<usize> = vec![0];
    let mut output = String::new();
    let ground = &mut scrolls[0];
    for done in 0..n {
        ground.0 = 0;
        let top = tops[done];
        let next = match words.next().unwrap() {
            "lay" => {
                let x: u32 = words.next().unwrap().parse().unwrap();
                scrolls.push((x, scrolls[top].1 + 1, top));
                scrolls.len() - 1
            }
            "lift" => scrolls[top].2,
            _ => {
                let k: usize = words.next().unwrap().parse().unwrap();
                tops[done - k]
            }
        };
        tops.push(next);
        output.push_str(&format!("{} {}\n", scrolls[next].0, scrolls[next].1));
    }
    print!("{}", output);
}
