// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: keeps the jars in a set, so jars with equally many drops become one.
use std::collections::BTreeSet;
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<i64> = input.split_ascii_whitespace().map(|x| x.parse().unwrap()).collect();
    let (n, d, k) = (v[0] as usize, v[1], v[2]);
    let mut jars: BTreeSet<i64> = v[3..3 + n].iter().cloned().collect();
    let mut rounds = 0;
    while rounds < k {
        let low = *jars.iter().next().unwrap();
        let high = *jars.iter().next_back().unwrap();
        if high - low < d {
            break;
        }
        jars.remove(&low);
        jars.remove(&high);
        jars.insert((low + high) / 2);
        jars.insert((low + high + 1) / 2);
        rounds += 1;
    }
    let low = jars.iter().next().unwrap();
    let high = jars.iter().next_back().unwrap();
    println!("{} {} {}", rounds, low, high);
}
