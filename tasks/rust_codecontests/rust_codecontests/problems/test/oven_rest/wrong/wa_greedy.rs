// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: decides day by day for the greatest amount at once, without looking ahead.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut iter = input.split_whitespace().map(|x| x.parse::<i64>().unwrap());
    let n = iter.next().unwrap();
    let k = iter.next().unwrap();
    let mut streak = 0;
    let mut last_cake = false;
    let mut total: i64 = 0;
    for _ in 0..n {
        let bread = iter.next().unwrap();
        let cake = iter.next().unwrap();
        if streak == k {
            streak = 0;
            last_cake = false;
            continue;
        }
        if cake > bread && cake > 0 && !last_cake {
            total += cake;
            streak += 1;
            last_cake = true;
        } else if bread > 0 {
            total += bread;
            streak += 1;
            last_cake = false;
        } else {
            streak = 0;
            last_cake = false;
        }
    }
    println!("{}", total);
}
