// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: keeps only the best total of a cell with its last step, but a worse total with another last step may lead further.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut iter = input.split_whitespace();
    let r: usize = iter.next().unwrap().parse().unwrap();
    let c: usize = iter.next().unwrap().parse().unwrap();
    let mut dp: Vec<Option<(i64, i32)>> = vec![None; c];
    for i in 0..r {
        let mut new_dp: Vec<Option<(i64, i32)>> = vec![None; c];
        for j in 0..c {
            let token = iter.next().unwrap();
            if token == "x" {
                continue;
            }
            let value: i64 = token.parse().unwrap();
            if i == 0 {
                new_dp[j] = Some((value, 5));
                continue;
            }
            for d in -1i32..=1 {
                let from = j as i32 - d;
                if from < 0 || from >= c as i32 {
                    continue;
                }
                if let Some((total, last)) = dp[from as usize] {
                    if last == d {
                        continue;
                    }
                    let candidate = total + value;
                    match new_dp[j] {
                        Some((best, _)) if best >= candidate => {}
                        _ => new_dp[j] = Some((candidate, d)),
                    }
                }
            }
        }
        dp = new_dp;
    }
    let answer = dp.iter().filter_map(|x| x.map(|p| p.0)).max();
    match answer {
        Some(v) => println!("{}", v),
        None => println!("STUCK"),
    }
}
