// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: it makes all moves one by one, up to 10^12 of them.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace().map(|x| x.parse::<u64>().unwrap());
    let n = it.next().unwrap() as usize;
    let k = it.next().unwrap();
    let f: Vec<usize> = (0..n).map(|_| it.next().unwrap() as usize - 1).collect();
    let a: Vec<u64> = (0..n).map(|_| it.next().unwrap()).collect();
    let mut visits = vec![0u32; n];
    let mut v = 0;
    let mut total = a[0];
    visits[0] = 1;
    for _ in 0..k {
        v = f[v];
        visits[v] += 1;
        if visits[v] % 2 == 1 {
            total += a[v];
        }
    }
    println!("{} {}", total, v + 1);
}
