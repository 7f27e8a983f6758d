// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
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
        for g in groups.iter_mut() {
            g.0 |= a;
            g.1 = gcd(g.1, a);
        }
        groups.push((a, a, 1));
        groups.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0 && later.1 == earlier.1;
            if same {
                earlier.2 += later.2;
            }
            same
        });
        for &(roar, hum, count) in &groups {
            if (roar - hum) % p == 0 {
                answer += count;
            }
        }
    }
    println!("{}", answer);
}
