// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: stops a start at its first block out of tune, but longer blocks can be in tune again.
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
        let mut roar = a[i];
        let mut hum = a[i];
        for j in i..n {
            roar |= a[j];
            hum = gcd(hum, a[j]);
            if (roar - hum) % p != 0 {
                break;
            }
            answer += 1;
        }
    }
    println!("{}", answer);
}
