// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: forgets that the hopper is emptied at the end.
use std::io::{self, Read};

fn turn(held: &mut u64, turns: &mut u64, heaviest: &mut u64) {
    let part = (*held + 1) / 2;
    *heaviest = (*heaviest).max(part);
    *held -= part;
    *turns += 1;
}

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let mut numbers = text.split_ascii_whitespace().map(|word| word.parse::<u64>().unwrap());
    let n = numbers.next().unwrap();
    let capacity = numbers.next().unwrap();
    let (mut held, mut turns, mut heaviest) = (0u64, 0u64, 0u64);
    for _ in 0..n {
        let w = numbers.next().unwrap();
        if w > capacity {
            continue;
        }
        while held + w > capacity {
            turn(&mut held, &mut turns, &mut heaviest);
        }
        held += w;
    }
    println!("{} {}", turns, heaviest);
}
