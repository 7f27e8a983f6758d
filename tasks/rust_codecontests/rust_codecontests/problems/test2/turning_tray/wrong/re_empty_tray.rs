// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: does not expect a take from an empty tray.
use std::collections::VecDeque;
use std::io::{self, BufRead};

fn main() {
    let mut row: VecDeque<i32> = VecDeque::new();
    let mut reversed = false;
    for line in io::stdin().lock().lines().skip(1) {
        let line = line.unwrap();
        let parts: Vec<&str> = line.split(' ').collect();
        if parts[0] == "put" {
            let x = parts[1].trim().parse().unwrap();
            if reversed {
                row.push_front(x);
            } else {
                row.push_back(x);
            }
        } else {
            let x = if reversed { row.pop_back().unwrap() } else { row.pop_front().unwrap() };
            println!("{}", x);
            if x % 2 == 0 {
                reversed = !reversed;
            }
        }
    }
}
