// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::collections::BTreeMap;
use std::io::{self, Read};

fn take(map: &mut BTreeMap<u64, u32>, x: u64) {
    let c = map.get_mut(&x).unwrap();
    *c -= 1;
    if *c == 0 {
        map.remove(&x);
    }
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace().map(|x| x.parse::<u64>().unwrap());
    let n = it.next().unwrap();
    let d = it.next().unwrap();
    let k = it.next().unwrap();
    let mut jars: BTreeMap<u64, u32> = BTreeMap::new();
    for _ in 0..n {
        *jars.entry(it.next().unwrap()).or_insert(0) += 1;
    }
    let mut rounds = 0;
    loop {
        let low = *jars.keys().next().unwrap();
        let high = *jars.keys().next_back().unwrap();
        if rounds == k || high - low < d {
            println!("{} {} {}", rounds, low, high);
            return;
        }
        take(&mut jars, low);
        take(&mut jars, high);
        let half = (low + high) / 2;
        *jars.entry(half).or_insert(0) += 1;
        *jars.entry(low + high - half).or_insert(0) += 1;
        rounds += 1;
    }
}
