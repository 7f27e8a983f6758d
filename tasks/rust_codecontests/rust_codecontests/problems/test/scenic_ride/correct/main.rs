// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::collections::VecDeque;
use std::io::{self, Read};

struct Road {
    scenic: Vec<i64>,
    inns: Vec<bool>,
    shortest: usize,
    longest: usize,
}

fn reachable(road: &Road, target: i64) -> bool {
    let n = road.scenic.len();
    let mut prefix = vec![0i64; n + 1];
    for i in 0..n {
        prefix[i + 1] = prefix[i] + 1000 * road.scenic[i] - target;
    }
    let mut queue: VecDeque<usize> = VecDeque::new();
    let mut next = 0;
    let mut inn = 0;
    for end in 1..=n {
        if road.inns[end - 1] {
            inn = end;
        }
        while next + road.shortest <= end && next < inn {
            while let Some(&back) = queue.back() {
                if prefix[back] < prefix[next] {
                    break;
                }
                queue.pop_back();
            }
            queue.push_back(next);
            next += 1;
        }
        while let Some(&front) = queue.front() {
            if front + road.longest >= end {
                break;
            }
            queue.pop_front();
        }
        if let Some(&front) = queue.front() {
            if prefix[end] >= prefix[front] {
                return true;
            }
        }
    }
    false
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace();
    let n: usize = it.next().unwrap().parse().unwrap();
    let shortest: usize = it.next().unwrap().parse().unwrap();
    let longest: usize = it.next().unwrap().parse().unwrap();
    let inns = it.next().unwrap().bytes().map(|b| b == b'1').collect();
    let scenic = (0..n)
        .map(|_| it.next().unwrap().parse().unwrap())
        .collect();
    let road = Road {
        scenic,
        inns,
        shortest,
        longest,
    };
    let (mut low, mut high) = (-1_000_000_001i64, 1_000_000_001i64);
    if !reachable(&road, low) {
        println!("NONE");
        return;
    }
    while high - low > 1 {
        let middle = (low + high).div_euclid(2);
        if reachable(&road, middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    println!("{}", low);
}
