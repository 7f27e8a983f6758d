// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: walks through the years one by one, which takes far too long for day numbers up to 10^15.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let mut next = || it.next().unwrap();
    let m: usize = next().parse().unwrap();
    let w: u64 = next().parse().unwrap();
    let a: u64 = next().parse().unwrap();
    let b: u64 = next().parse().unwrap();
    let l: usize = next().parse().unwrap();
    let months: Vec<u64> = (0..m).map(|_| next().parse().unwrap()).collect();
    let base: u64 = months.iter().sum();
    let leap = |y: u64| y % a == 0 && y % b != 0;
    let q: usize = next().parse().unwrap();
    for _ in 0..q {
        if next() == "N" {
            let x: u64 = next().parse().unwrap();
            let mut left = x;
            let mut y = 1;
            loop {
                let len = base + leap(y) as u64;
                if left <= len {
                    break;
                }
                left -= len;
                y += 1;
            }
            let mut month = 0;
            loop {
                let len = months[month] + (month + 1 == l && leap(y)) as u64;
                if left <= len {
                    break;
                }
                left -= len;
                month += 1;
            }
            println!("{} {} {} {}", y, month + 1, left, (x - 1) % w + 1);
        } else {
            let y: u64 = next().parse().unwrap();
            let mo: usize = next().parse().unwrap();
            let d: u64 = next().parse().unwrap();
            if mo > m || d > months[mo - 1] + (mo == l && leap(y)) as u64 {
                println!("none");
                continue;
            }
            let mut x = d;
            for z in 1..y {
                x += base + leap(z) as u64;
            }
            for i in 1..mo {
                x += months[i - 1] + (i == l && leap(y)) as u64;
            }
            println!("{} {}", x, (x - 1) % w + 1);
        }
    }
}
