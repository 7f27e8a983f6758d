// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let mut numbers = text.split_ascii_whitespace().map(|word| word.parse::<usize>().unwrap());
    let n = numbers.next().unwrap();
    let q = numbers.next().unwrap();
    let mut parent = vec![0usize; n + 1];
    for hut in 2..=n {
        parent[hut] = numbers.next().unwrap();
    }
    let mut length = vec![0u64; n + 1];
    for hut in 2..=n {
        length[hut] = numbers.next().unwrap() as u64;
    }
    let mut odd = vec![false; n + 1];
    for _ in 0..2 * q {
        let hut = numbers.next().unwrap();
        odd[hut] = !odd[hut];
    }
    let (mut lit, mut total, mut dark) = (0u64, 0u64, 0u64);
    for hut in (2..=n).rev() {
        if odd[hut] {
            lit += 1;
            total += length[hut];
            odd[parent[hut]] = !odd[parent[hut]];
        } else {
            dark = dark.max(length[hut]);
        }
    }
    println!("{} {} {}", lit, total, dark);
}
