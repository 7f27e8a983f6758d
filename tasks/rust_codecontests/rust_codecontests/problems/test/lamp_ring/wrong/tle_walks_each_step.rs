// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: It makes every step of every walk.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace().map(|x| x.parse::<i64>().unwrap());
    let n = it.next().unwrap() as usize;
    let m = it.next().unwrap() as usize;
    let mut lamps = vec![0i64; n];
    for _ in 0..m {
        let s = it.next().unwrap() as usize - 1;
        let c = it.next().unwrap() as usize;
        let w = it.next().unwrap();
        for j in 0..c {
            lamps[(s + j) % n] += w;
        }
    }
    let best = *lamps.iter().max().unwrap();
    let at = lamps.iter().position(|&x| x == best).unwrap() + 1;
    let lit = lamps.iter().filter(|&&x| x > 0).count();
    println!("{} {} {}", best, at, lit);
}
