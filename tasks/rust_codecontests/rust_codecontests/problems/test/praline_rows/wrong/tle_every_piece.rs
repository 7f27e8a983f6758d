// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: It extends a piece from every beginning: quadratic, with a hash map.
use std::collections::HashMap;
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace().map(|x| x.parse::<u64>().unwrap());
    let n = it.next().unwrap() as usize;
    let k = it.next().unwrap() as usize;
    let c = it.next().unwrap();
    let row: Vec<u64> = it.take(n).collect();
    let mut total = 0u64;
    for i in 0..n {
        let mut count: HashMap<u64, u64> = HashMap::new();
        for j in i..n {
            let e = count.entry(row[j]).or_insert(0);
            *e += 1;
            if *e > c || count.len() > k {
                break;
            }
            if count.len() == k {
                total += 1;
            }
        }
    }
    println!("{}", total);
}
