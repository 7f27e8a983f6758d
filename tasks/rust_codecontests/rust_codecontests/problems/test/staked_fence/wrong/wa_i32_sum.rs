// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: the number of stakes is summed up in i32, but may reach 2.4 * 10^13.
use std::io::{self, Read};

fn gcd(a: i32, b: i32) -> i32 {
    if b == 0 {
        a
    } else {
        gcd(b, a.wrapping_rem(b))
    }
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<i32> = input.split_whitespace().map(|x| x.parse().unwrap()).collect();
    let n = v[0] as usize;
    let mut stakes = 0;
    let mut gates = 0;
    for i in 0..n {
        let j = (i + 1) % n;
        let dx = (v[2 * j + 1] - v[2 * i + 1]).abs();
        let dy = (v[2 * j + 2] - v[2 * i + 2]).abs();
        let g = gcd(dx, dy);
        stakes += g;
        if g % 2 == 0 {
            gates += 1;
        }
    }
    println!("{} {}", stakes, gates);
}
