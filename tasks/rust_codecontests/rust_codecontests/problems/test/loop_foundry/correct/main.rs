// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

const P: u64 = 1_000_000_007;
type Matrix = [[u64; 5]; 5];

fn identity() -> Matrix {
    let mut m = [[0; 5]; 5];
    for i in 0..5 {
        m[i][i] = 1;
    }
    m
}

fn mul(a: &Matrix, b: &Matrix) -> Matrix {
    let mut c = [[0; 5]; 5];
    for i in 0..5 {
        for j in 0..5 {
            let mut s = 0;
            for k in 0..5 {
                s += a[i][k] * b[k][j];
            }
            c[i][j] = s % P;
        }
    }
    c
}

fn power(mut base: Matrix, mut e: u64) -> Matrix {
    let mut result = identity();
    while e > 0 {
        if e & 1 == 1 {
            result = mul(&base, &result);
        }
        base = mul(&base, &base);
        e >>= 1;
    }
    result
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace();
    let n: usize = it.next().unwrap().parse().unwrap();
    let mut start = [1u64; 5];
    for v in start.iter_mut().take(4) {
        *v = it.next().unwrap().parse().unwrap();
    }
    let register = |s: &str| (s.as_bytes()[0] - b'a') as usize;
    let mut stack: Vec<(u64, Matrix)> = vec![(1, identity())];
    for _ in 0..n {
        let command = it.next().unwrap();
        if command == "end" {
            let (k, body) = stack.pop().unwrap();
            let top = stack.last_mut().unwrap();
            top.1 = mul(&power(body, k), &top.1);
            continue;
        }
        let first = it.next().unwrap();
        if command == "loop" {
            stack.push((first.parse().unwrap(), identity()));
            continue;
        }
        let second = it.next().unwrap();
        let x = register(first);
        let mut step = identity();
        match command {
            "add" => step[x][register(second)] += 1,
            "inc" => step[x][4] = second.parse().unwrap(),
            "mul" => step[x][x] = second.parse().unwrap(),
            "set" => {
                step[x][x] = 0;
                step[x][4] = second.parse().unwrap();
            }
            _ => step.swap(x, register(second)),
        }
        let top = stack.last_mut().unwrap();
        top.1 = mul(&step, &top.1);
    }
    let m = stack[0].1;
    let out: Vec<String> = (0..4)
        .map(|i| {
            let s: u64 = (0..5).map(|j| m[i][j] * start[j] % P).sum();
            (s % P).to_string()
        })
        .collect();
    println!("{}", out.join(" "));
}
