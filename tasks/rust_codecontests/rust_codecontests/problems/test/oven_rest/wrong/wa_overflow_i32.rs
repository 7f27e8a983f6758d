// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: totals are kept in i32 and overflow.
use std::io::{self, Read};

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let mut it = text.split_whitespace().map(|x| x.parse::<i32>().unwrap());
    let n = it.next().unwrap() as usize;
    let k = it.next().unwrap() as usize;
    let neg = i32::MIN / 4;
    let mut bread = vec![neg; k + 1];
    let mut cake = vec![neg; k + 1];
    let mut rest = 0i32;
    for _ in 0..n {
        let b = it.next().unwrap();
        let c = it.next().unwrap();
        let mut next_bread = vec![neg; k + 1];
        let mut next_cake = vec![neg; k + 1];
        let mut next_rest = rest;
        for s in 1..=k {
            next_rest = next_rest.max(bread[s]).max(cake[s]);
        }
        next_bread[1] = rest + b;
        next_cake[1] = rest + c;
        for s in 2..=k {
            next_bread[s] = bread[s - 1].max(cake[s - 1]) + b;
            next_cake[s] = bread[s - 1] + c;
        }
        bread = next_bread;
        cake = next_cake;
        rest = next_rest;
    }
    let mut ans = rest;
    for s in 1..=k {
        ans = ans.max(bread[s]).max(cake[s]);
    }
    println!("{}", ans);
}
