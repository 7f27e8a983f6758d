// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::collections::VecDeque;
use std::io::{self, Read};

const MOD: u64 = 998_244_353;

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let mut input = text.split_ascii_whitespace();
    let mut number = || input.next().unwrap().parse::<usize>().unwrap();
    let (length, letters, forbidden, wished) = (number(), number(), number(), number());
    let mut next: Vec<[usize; 26]> = vec![[0; 26]];
    let mut bad = vec![false];
    let mut mask = vec![0usize];
    for (k, word) in input.enumerate() {
        let mut at = 0;
        for byte in word.bytes() {
            let letter = (byte - b'a') as usize;
            if next[at][letter] == 0 {
                next[at][letter] = next.len();
                next.push([0; 26]);
                bad.push(false);
                mask.push(0);
            }
            at = next[at][letter];
        }
        if k < forbidden {
            bad[at] = true;
        } else {
            mask[at] |= 1 << (k - forbidden);
        }
    }
    let mut link = vec![0usize; next.len()];
    let mut queue: VecDeque<usize> = next[0].iter().copied().filter(|&s| s > 0).collect();
    while let Some(at) = queue.pop_front() {
        bad[at] = bad[at] || bad[link[at]];
        mask[at] |= mask[link[at]];
        for letter in 0..letters {
            let other = next[link[at]][letter];
            if next[at][letter] == 0 {
                next[at][letter] = other;
            } else {
                link[next[at][letter]] = other;
                queue.push_back(next[at][letter]);
            }
        }
    }
    let full = 1 << wished;
    let mut ways = vec![vec![0u64; full]; next.len()];
    ways[0][0] = 1;
    for _ in 0..length {
        let mut longer = vec![vec![0u64; full]; next.len()];
        for at in 0..next.len() {
            for seen in 0..full {
                if ways[at][seen] == 0 {
                    continue;
                }
                for letter in 0..letters {
                    let to = next[at][letter];
                    if !bad[to] {
                        let entry = &mut longer[to][seen | mask[to]];
                        *entry = (*entry + ways[at][seen]) % MOD;
                    }
                }
            }
        }
        ways = longer;
    }
    println!("{}", ways.iter().map(|w| w[full - 1]).sum::<u64>() % MOD);
}
