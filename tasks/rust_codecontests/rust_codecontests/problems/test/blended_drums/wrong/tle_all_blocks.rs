// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: computes both sounds of every block from all its drums, which is cubic.
use std::io::{self, Read};

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<u64> = input.split_ascii_whitespace().map(|x| x.parse().unwrap()).collect();
    let n = v[0] as usize;
    let p = v[1];
    let a = &v[2..];
    let mut answer = 0u64;
    for i in 0..n {
        for j in i..n {
            let block = &a[i..=j];
            let roar = block.iter().fold(0, |x, &y| x | y);
            let hum = block.iter().fold(0, |x, &y| gcd(x, y));
            if (roar - hum) % p == 0 {
                answer += 1;
            }
        }
    }
    println!("{}", answer);
}
