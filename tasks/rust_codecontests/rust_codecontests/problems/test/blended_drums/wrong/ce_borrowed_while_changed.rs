// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: removes from the vector of groups while a loop borrows it, so it does not compile.
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
        groups.push((a, a, 1));
        for (i, g) in groups.iter_mut().enumerate() {
            g.0 |= a;
            g.1 = gcd(g.1, a);
            if i > 0 && groups[i - 1].0 == g.0 && groups[i - 1].1 == g.1 {
                groups[i - 1].2 += g.2;
                groups.remove(i);
            }
        }
        for g in &groups {
            if (g.0 - g.1) % p == 0 {
                answer += g.2;
            }
        }
    }
    println!("{}", answer);
}
