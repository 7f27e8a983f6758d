// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: carries out every round of every loop, which never ends for counts up to 10^18.
use std::io::{self, Read};

const P: u64 = 1_000_000_007;

fn run(program: &[Vec<&str>], from: usize, to: usize, close: &[usize], r: &mut [u64; 4]) {
    let reg = |s: &str| (s.as_bytes()[0] - b'a') as usize;
    let mut i = from;
    while i < to {
        let c = &program[i];
        match c[0] {
            "loop" => {
                let k: u64 = c[1].parse().unwrap();
                for _ in 0..k {
                    run(program, i + 1, close[i], close, r);
                }
                i = close[i];
            }
            "add" => r[reg(c[1])] = (r[reg(c[1])] + r[reg(c[2])]) % P,
            "inc" => r[reg(c[1])] = (r[reg(c[1])] + c[2].parse::<u64>().unwrap()) % P,
            "mul" => r[reg(c[1])] = r[reg(c[1])] * c[2].parse::<u64>().unwrap() % P,
            "set" => r[reg(c[1])] = c[2].parse().unwrap(),
            "swap" => r.swap(reg(c[1]), reg(c[2])),
            _ => {}
        }
        i += 1;
    }
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut lines = input.lines();
    let n: usize = lines.next().unwrap().trim().parse().unwrap();
    let start: Vec<u64> = lines.next().unwrap().split_whitespace().map(|x| x.parse().unwrap()).collect();
    let program: Vec<Vec<&str>> = lines.take(n).map(|l| l.split_whitespace().collect()).collect();
    let mut close = vec![0; n];
    let mut stack = vec![];
    for i in 0..n {
        if program[i][0] == "loop" {
            stack.push(i);
        } else if program[i][0] == "end" {
            close[stack.pop().unwrap()] = i;
        }
    }
    let mut r = [start[0], start[1], start[2], start[3]];
    run(&program, 0, n, &close, &mut r);
    println!("{} {} {} {}", r[0] % P, r[1] % P, r[2] % P, r[3] % P);
}
