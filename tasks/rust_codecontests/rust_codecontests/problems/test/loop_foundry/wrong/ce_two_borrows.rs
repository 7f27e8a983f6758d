// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: borrows one row mutably while another row of the same matrix is read.
use std::io::{self, Read};

const P: u64 = 1_000_000_007;

fn unit() -> Vec<Vec<u64>> {
    (0..5).map(|i| (0..5).map(|j| if i == j { 1 } else { 0 }).collect()).collect()
}

fn mul(a: &Vec<Vec<u64>>, b: &Vec<Vec<u64>>) -> Vec<Vec<u64>> {
    let mut c = vec![vec![0; 5]; 5];
    for i in 0..5 {
        for j in 0..5 {
            for k in 0..5 {
                c[i][j] = (c[i][j] + a[i][k] * b[k][j]) % P;
            }
        }
    }
    c
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let n: usize = it.next().unwrap().parse().unwrap();
    let mut v: Vec<u64> = (0..4).map(|_| it.next().unwrap().parse().unwrap()).collect();
    v.push(1);
    let mut stack: Vec<(u64, Vec<Vec<u64>>)> = vec![(1, unit())];
    for _ in 0..n {
        let c = it.next().unwrap();
        if c == "loop" {
            stack.push((it.next().unwrap().parse().unwrap(), unit()));
        } else if c == "end" {
            let (mut k, mut base) = stack.pop().unwrap();
            let top = stack.last_mut().unwrap();
            while k > 0 {
                if k % 2 == 1 {
                    top.1 = mul(&base, &top.1);
                }
                base = mul(&base, &base);
                k /= 2;
            }
        } else {
            let x = (it.next().unwrap().as_bytes()[0] - b'a') as usize;
            let s = it.next().unwrap();
            let m = &mut stack.last_mut().unwrap().1;
            let row = &mut m[x];
            match c {
                "add" => {
                    let y = (s.as_bytes()[0] - b'a') as usize;
                    for j in 0..5 {
                        row[j] = (row[j] + m[y][j]) % P;
                    }
                }
                "swap" => m.swap(x, (s.as_bytes()[0] - b'a') as usize),
                "inc" => row[4] = (row[4] + s.parse::<u64>().unwrap()) % P,
                "mul" => row.iter_mut().for_each(|p| *p = *p * s.parse::<u64>().unwrap() % P),
                _ => *row = vec![0, 0, 0, 0, s.parse().unwrap()],
            }
        }
    }
    for i in 0..4 {
        let s = (0..5).fold(0, |s, j| (s + stack[0].1[i][j] * v[j]) % P);
        print!("{} ", s);
    }
    println!();
}
