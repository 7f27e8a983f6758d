// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: merges starts with the same OR although their greatest common divisors differ.
use std::io::{self, Read};

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace().map(|x| x.parse::<u32>().unwrap());
    let n = it.next().unwrap();
    let p = it.next().unwrap();
    let mut groups: Vec<(u32, u32, u64)> = Vec::new();
    let mut answer = 0u64;
    for _ in 0..n {
        let a = it.next().unwrap();
        let mut next: Vec<(u32, u32, u64)> = Vec::new();
        groups.push((a, a, 1));
        for &(roar, hum, count) in &groups {
            let r = roar | a;
            let h = gcd(hum, a);
            match next.last_mut() {
                Some(last) if last.0 == r => {
                    last.1 = h;
                    last.2 += count;
                }
                _ => next.push((r, h, count)),
            }
        }
        groups = next;
        for g in &groups {
            if (g.0 - g.1) % p == 0 {
                answer += g.2;
            }
        }
    }
    println!("{}", answer);
}
